"""Scenarios of Accept lists for outputs, and of the types and indexes of frames. Catalogue 2.7."""

from __future__ import annotations

from typing import Any

from invoker_conformance.riff import frames
from invoker_conformance.riff.frames import JSON, OCTETS, TEXT
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import NAC, UE
from invoker_conformance.scenario import scenario

XHTML = "text/html,application/xhtml+xml"


async def _encodes(
    probe: Probe,
    accept: str,
    value: Any,
    media_type: str,
    payload: bytes,
    *,
    sent_as: str = JSON,
    parameters: bool = False,
) -> None:
    """Check that a value comes back with this type and this payload."""
    content = value if isinstance(value, bytes) else frames.to_json(value)
    async with probe.call() as call:
        await call.one(content, sent_as, accept=accept)
        frame = (await call.succeeds(payload))[0]
        met = frame.contentType if parameters else frame.contentType.partition(";")[0].strip()
        if met.lower().replace(" ", "") != media_type:
            raise call.failure(f"contentType {frame.contentType!r} for Accept {accept!r}", media_type)


@scenario("RT-30", "R-100", "R-093", function=("square", "marks"))
async def not_acceptable(probe: Probe) -> None:
    """A type without codec is refused when the StartFrame arrives; the function is not called."""
    watch = await probe.watch("square.calls")
    await probe.call_fails(NAC, "text/zglorbf", "#0", types=["text/zglorbf"], inputs=["a"], outputs=["b"])
    async with probe.call() as call:
        await call.all(2, types=["text/zglorbf"])
        await call.fails(NAC, after=0)
    await watch.stays("square.calls")


@scenario("RT-31", "R-100", function="two_outputs")
async def second_output_not_acceptable(probe: Probe) -> None:
    """The detail names the output that is not acceptable."""
    await probe.call_fails(NAC, "image/png", "#1", types=[JSON, "image/png"], inputs=["a"], outputs=["o", "p"])


@scenario("RT-32", "R-095", function="echo")
async def accept_list_order(probe: Probe) -> None:
    """Without q-values the first entry that can be encoded wins."""
    await _encodes(probe, f"{TEXT}, {JSON}", "x", TEXT, b"x")
    await _encodes(probe, f"{JSON}, {TEXT}", "x", JSON, b'"x"')
    await _encodes(probe, f"image/png, {TEXT}, {JSON}", "x", TEXT, b"x")


@scenario("RT-33", "R-096", function="echo")
async def accept_q_values(probe: Probe) -> None:
    """Entries are ranked by their q-values, and only then by their order; an invalid q counts as 1."""
    await _encodes(probe, f"{TEXT};q=0.2, {JSON};q=0.9", "x", JSON, b'"x"')
    await _encodes(probe, f"{TEXT};q=0.2, {JSON}", "x", JSON, b'"x"')
    await _encodes(probe, f"{JSON};q=0.9, {TEXT};q=high", "x", TEXT, b"x")


@scenario("RT-34", "R-096", function="echo")
async def accept_q_zero_excludes(probe: Probe) -> None:
    """q=0 excludes a type, also from a range that covers it."""
    await _encodes(probe, f"{TEXT};q=0, */*;q=0.1", "x", JSON, b'"x"')
    await _encodes(probe, f"{JSON};q=0, */*", "x", TEXT, b"x")
    await probe.call_fails(NAC, types=[f"{JSON};q=0"])


@scenario("R-096", function="echo")
async def accept_most_specific_range(probe: Probe) -> None:
    """The most specific range sets the q of a type."""
    await _encodes(probe, f"text/*;q=0.9, {TEXT};q=0.1, {JSON};q=0.5", "x", JSON, b'"x"')


@scenario("RT-35", "R-097", function="echo")
async def accept_of_a_browser(probe: Probe) -> None:
    """The Accept header of a browser selects JSON by its */*."""
    await _encodes(probe, f"{XHTML},*/*;q=0.8", "x", JSON, b'"x"')


@scenario("RT-36", "R-096", function="echo")
async def accept_parameters_on_the_first_entry(probe: Probe) -> None:
    """Parameters of the first entry do not hide later entries."""
    await _encodes(probe, f"application/xml;q=0.9, {JSON}", "x", JSON, b'"x"')


@scenario("RT-37", "R-101", function="echo")
async def accept_empty(probe: Probe) -> None:
    """An empty or blank entry means no preference; empty and malformed elements are skipped."""
    for accept in ("", "  ", f"image/png,,{JSON}", f", {JSON} ,", f"no type at all, {JSON}", "*/*"):
        await _encodes(probe, accept, "x", JSON, b'"x"')
    await probe.call_fails(NAC, types=["no type at all"])


@scenario("R-097", "R-098", function="echo")
async def accept_ranges(probe: Probe) -> None:
    """text/* is answered with text/plain, application/* with JSON; the frame names the concrete type."""
    await _encodes(probe, "text/*", "x", TEXT, b"x")
    await _encodes(probe, "application/*", "x", JSON, b'"x"')
    await _encodes(probe, f"image/*, {TEXT};q=0.5", "x", TEXT, b"x")


@scenario("RT-38", "R-099", function="echo")
async def accept_anything_for_bytes(probe: Probe) -> None:
    """Bytes go out in the best accepted type that can carry them, for */* and for a list."""
    await _encodes(probe, "*/*", b"\x00", OCTETS, b"\x00", sent_as=OCTETS)
    await _encodes(probe, f"{JSON}, {OCTETS}", b"\x00", OCTETS, b"\x00", sent_as=OCTETS)


@scenario("RT-39", "R-099", function="echo")
async def accept_json_only_for_bytes(probe: Probe) -> None:
    """Bytes cannot be serialised when only JSON is accepted; the detail names the output and the type."""
    async with probe.call() as call:
        await call.start([JSON])
        await call.data(b"\x00", OCTETS)
        await call.fails(UE, "0", JSON, after=0)


@scenario("R-089", function="echo")
async def octets_from_text(probe: Probe) -> None:
    """Text that goes out as octet-stream is sent in UTF-8; a number goes out in the next acceptable type."""
    await _encodes(probe, OCTETS, "é", OCTETS, b"\xc3\xa9")
    await _encodes(probe, f"{OCTETS}, {JSON}", 7, JSON, b"7")


@scenario("R-078", function="echo")
async def scalars_as_text(probe: Probe) -> None:
    """Numbers and booleans go out as text/plain in the forms 42, true and false."""
    for value, payload in ((42, b"42"), (True, b"true"), (False, b"false"), ("x", b"x"), (0.5, b"0.5")):
        await _encodes(probe, TEXT, value, TEXT, payload)


@scenario("R-042", function="echo")
async def null_is_a_value(probe: Probe) -> None:
    """A null result is sent as a frame: null as JSON, and nothing as text or octets."""
    await _encodes(probe, JSON, None, JSON, b"null")
    await _encodes(probe, TEXT, None, TEXT, b"")
    await _encodes(probe, OCTETS, None, OCTETS, b"")
    await probe.call_gives([1, None, 2], [1, None, 2])


@scenario("RT-40", "R-102", function="echo")
async def accept_charset_is_echoed(probe: Probe) -> None:
    """A charset that is asked for is used and named in the media type."""
    async with probe.call() as call:
        await call.all("h€", types=[f"{TEXT}; charset=utf-16"])
        got, ending = await call.rest()
        met = [(frame.contentType.lower().replace(" ", "").replace('"', ""), frame.payload) for frame in got]
        if len(met) != 1 or met[0][0] != f"{TEXT};charset=utf-16" or met[0][1].decode("utf-16") != "h€":
            raise call.failure(f"{met}, then {ending}", "one UTF-16 frame with charset=utf-16")


@scenario("R-102", function="echo")
async def accept_parameters_unknown(probe: Probe) -> None:
    """Other parameters of a range are ignored and not echoed."""
    await _encodes(probe, f"{JSON};flavour=sweet", "x", JSON, b'"x"', parameters=True)


@scenario("RT-41", "R-103", function="echo")
async def accept_charset_that_cannot_carry_the_text(probe: Probe) -> None:
    """Text that the charset cannot carry cannot be serialised."""
    await probe.call_fails(UE, sent=["日"], types=[f"{TEXT};charset=iso-8859-1"])


@scenario("R-087", function="echo")
async def json_out_is_utf8(probe: Probe) -> None:
    """Text beyond ASCII comes back unchanged, as JSON in UTF-8."""
    await probe.call_gives(["日本 € 🐍 \u0000"], ["日本 € 🐍 \u0000"])


@scenario("RT-66", "R-107", "R-098", function="respond")
async def content_type_header_is_only_a_header(probe: Probe) -> None:
    """A Content-Type header set by the function never changes the contentType of the frame."""
    async with probe.call() as call:
        await call.all({"payload": "x", "headers": {"Content-Type": "text/csv", "X-Other": "1"}}, types=[TEXT])
        frame = (await call.succeeds(b"x"))[0]
        if frame.contentType.partition(";")[0] != TEXT or dict(frame.headers) != {
            "Content-Type": "text/csv",
            "X-Other": "1",
        }:
            raise call.failure(f"{frame.contentType!r} with headers {dict(frame.headers)}", f"{TEXT} and both headers")


@scenario("R-039", "R-105", "R-106", function="route")
async def values_go_to_their_output(probe: Probe) -> None:
    """Values are sent on the output that the function names, by index or name, each output in order."""
    parcels = [[0, "a"], [1, "b"], ["right", "c"], ["left", "d"], [1, "e"], [0, "f"]]
    async with probe.call() as call:
        await call.all(*parcels, types=[JSON, JSON], inputs=["in"], outputs=["left", "right"])
        got, ending = await call.rest()
        met = {index: [call.json_of(each) for each in got if each.resultIndex == index] for index in (0, 1)}
        if ending.code.name != "OK" or met != {0: ["a", "d", "f"], 1: ["b", "c", "e"]}:
            raise call.failure(f"{met}, then {ending}", "a, d, f on 0 and b, c, e on 1, then OK")


@scenario("R-039", "R-136", function="route")
async def values_for_no_output_fail(probe: Probe) -> None:
    """A value for an unknown output fails the call; the detail names the target."""
    for target in (2, -1, "nowhere"):
        await probe.call_fails(
            UE, str(target), sent=[[target, 1]], types=[JSON, JSON], inputs=["in"], outputs=["left", "right"]
        )
