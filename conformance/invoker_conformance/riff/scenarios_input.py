"""InputFrame: routing and media types. Catalogue 2.5."""

from __future__ import annotations

from invoker_conformance.riff import frames
from invoker_conformance.riff.frames import JSON, OCTETS, TEXT
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import BIS, BIS_UNKNOWN, PV, UMT
from invoker_conformance.scenario import Failure, breaking, scenario


@scenario("R-062", "R-063", "R-126", function="repeat")
async def frames_reach_their_input(probe: Probe) -> None:
    """Words and counts reach input 0 and input 1, in the order of arrival, whatever the interleaving."""
    async with probe.call() as call:
        await call.start(inputs=["words", "numbers"], outputs=["repeated"])
        await call.json("one", "two", index=0)
        await call.json(1, 2, 3, index=1)
        await call.json("three", index=0)
        await call.half_close()
        await call.gives("one", "two", "two", "three", "three", "three")


@scenario("RT-14", "R-064", "R-110", function=("total", "marks"))
async def arg_index_negative(probe: Probe) -> None:
    """A negative argIndex fails the call, and the function's inputs raise instead of ending."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    async with probe.call() as call:
        await call.start()
        await call.json(1)
        await call.json(1, index=-1)
        with breaking("R-064"):
            await call.fails(PV, "-1", after=0)
    with breaking("R-110"):
        await watch.is_cut_off("total")


@scenario("RT-15", "R-064", function="pairs")
async def arg_index_out_of_range(probe: Probe) -> None:
    """An argIndex of 2 for two inputs, and the ends of int32, fail the call."""
    for index in (2, 2**31 - 1, -(2**31)):
        async with probe.call() as call:
            await call.start(inputs=["a", "b"])
            await call.json(1, index=index)
            await call.fails(PV, str(index), after=0)


@scenario("RT-16", "R-061", function="echo")
async def content_type_missing(probe: Probe) -> None:
    """An empty contentType means application/octet-stream."""
    async with probe.call() as call:
        await call.one(b"\x00\xff", "", accept=OCTETS)
        await call.succeeds(b"\x00\xff")


@scenario("RT-17", "R-067", function="echo")
async def content_type_wildcard(probe: Probe) -> None:
    """A wildcard contentType is refused."""
    for media_type in ("*/*", "text/*"):
        async with probe.call() as call:
            await call.start()
            await call.data(b"1", media_type)
            await call.fails(UMT, media_type, after=0)


@scenario("RT-18", "R-066", function="echo")
async def content_type_garbage(probe: Probe) -> None:
    """A contentType that is no media type is refused."""
    for media_type in ("!![]not a type", "json", "/", "application/"):
        async with probe.call() as call:
            await call.start()
            await call.data(b"1", media_type)
            await call.fails(UMT, after=0)


@scenario("RT-19", "R-065", function="repeat")
async def content_type_unsupported(probe: Probe) -> None:
    """A type without codec is refused; the detail names the type and the input."""
    for index in (0, 1):
        async with probe.call() as call:
            await call.start(inputs=["words", "numbers"])
            await call.data(b"1", "application/x-doom", index=index)
            await call.fails(UMT, "application/x-doom", f"#{index}", after=0)


@scenario("R-093", function="echo")
async def other_text_types_have_no_codec(probe: Probe) -> None:
    """text/zglorbf is not taken for text/plain."""
    async with probe.call() as call:
        await call.start()
        await call.data(b"x", "text/zglorbf")
        await call.fails(UMT, "text/zglorbf", after=0)


@scenario("RT-20", "R-060", function="echo")
async def content_type_case_and_quotes(probe: Probe) -> None:
    """Media types are compared without regard to case, parameters may be quoted and spaced."""
    for media_type, payload in (
        ('Text/PLAIN; charset="UTF-8"', b"h\xc3\xa9"),
        ('Application/JSON; Charset="UTF-8"', b'"h\xc3\xa9"'),
        ("application/json ; charset=utf-8", b'"h\xc3\xa9"'),
    ):
        async with probe.call() as call:
            await call.one(payload, media_type)
            await call.gives("hé")


@scenario("RT-21", "R-068", function="echo")
async def invalid_json(probe: Probe) -> None:
    """A payload that its codec cannot decode fails the call with UNKNOWN."""
    async with probe.call() as call:
        await call.start()
        await call.data(b"{")
        await call.fails(BIS_UNKNOWN, after=0)


@scenario("R-075", function="square")
async def values_before_a_bad_one_count(probe: Probe) -> None:
    """Values before a bad frame are answered; the bad frame then fails the call at once, without a half-close."""
    async with probe.call() as call:
        await call.start()
        await call.json(2)
        await call.begins(4)
        await call.data(b"[")
        await call.fails(BIS, after=0)
    async with probe.call() as call:
        await call.start()
        await call.json(2, 3)
        await call.data(b"[")
        got = [call.json_of(frame) for frame in await call.fails(BIS)]
        if got != [4, 9][: len(got)]:
            raise call.failure(f"the values {got}", "a prefix of [4, 9]")


@scenario("R-076", "R-114", function="early")
async def errors_nobody_reads_are_ignored(probe: Probe) -> None:
    """A bad frame for a function that has returned does not spoil the OK."""
    async with probe.call() as call:
        await call.start()
        await call.json(1, 2)
        await call.frame()
        await call.frame()
        await call.data(b"{")
        await call.data(b"x", "application/x-doom")
        await call.gives()


@scenario("R-072", "R-107", "R-041", function="headers")
async def headers_reach_the_function(probe: Probe) -> None:
    """All headers of a frame reach a function that asks for the message, and headers it sets go out."""
    sent = {"X-One": "1", "two": "zwei", "contentType": "kept", "Content-Type": "kept too"}
    await _headers(probe, sent, lookup="two", found="zwei")


@scenario("RT-64", "R-108", "R-107", function="headers")
async def unicode_headers_round_trip(probe: Probe) -> None:
    """Unicode names and values and empty values come back as they were."""
    await _headers(probe, {"Ünï": "日本", "empty": ""}, lookup="Ünï", found="日本")


@scenario("RT-65", "R-073", function="headers")
async def header_lookup_ignores_case(probe: Probe) -> None:
    """X-Custom is found as x-custom, and keeps its spelling."""
    await _headers(probe, {"X-Custom": "yes"}, lookup="x-custom", found="yes")


@scenario("R-074", function="headers")
async def headers_that_differ_in_case(probe: Probe) -> None:
    """Headers that differ in case are both kept; a lookup gives the first in sorted order."""
    await _headers(probe, {"x-a": "small", "X-A": "large", "X-a": "mixed"}, lookup="x-A", found="large")


async def _headers(probe: Probe, sent: dict[str, str], *, lookup: str, found: str) -> None:
    async with probe.call() as call:
        await call.one(frames.to_json(lookup), JSON, headers=sent)
        got = await call.gives({"found": found, "all": sent})
        if dict(got[0].headers) != sent:
            raise call.failure(f"headers {dict(got[0].headers)} on the frame", f"{sent}")


@scenario("R-094", function="square")
async def text_for_a_number(probe: Probe) -> None:
    """text/plain is converted for a numeric parameter; text that is no number fails."""
    async with probe.call() as call:
        await call.one(b"12", TEXT)
        await call.gives(144)
    async with probe.call() as call:
        await call.start()
        await call.data(b"x", TEXT)
        await call.fails(BIS, after=0)


@scenario("R-084", "R-161", function="area")
async def structured_parameter(probe: Probe) -> None:
    """An object is built from JSON; an extra field is ignored; a missing or misfit field fails."""
    await probe.call_gives([{"width": 3, "height": 4}, {"width": 5, "height": 6, "depth": 7}], [12, 30])
    for misfit in ({"width": 3}, {"width": "wide", "height": 4}, [3, 4, 5], None):
        await probe.call_fails(BIS, sent=[misfit])


@scenario("RT-85", "R-061", "R-135", "R-134", function="drain_second_first")
async def window_of_a_stream_processor(probe: Probe) -> None:
    """A call as a stream processor makes it works, with empty contentTypes and headers of its own."""
    async with probe.call() as call:
        await call.start([OCTETS], ["words", "numbers"], ["drained"])
        await call.data(b"\x00two", "", index=0, headers={"ce-id": "8"})
        await call.data(b"2", TEXT, index=1, headers={"ce-id": "7", "source": "/window"})
        await call.half_close()
        got, ending = await call.rest()
        if UMT.matches(ending.code, ending.detail):
            raise Failure(f"{ending}", "octets, where the contentType is empty", call.sent, breaks=("R-061",))
        if ending.code.name != "OK" or [frame.payload for frame in got] != [b"2", b"\x00two"]:
            raise call.failure(f"{[frame.payload for frame in got]}, then {ending}", "2 and \\x00two, then OK")


@scenario("RT-84", "R-138", function="square")
async def frames_of_the_http_adapter(probe: Probe) -> None:
    """A call as an HTTP adapter makes it, with every HTTP header on its one frame, gets one frame and OK."""
    headers = {
        "Accept": "application/json;q=0.9, */*;q=0.1",
        "Content-Type": JSON,
        "User-Agent": "curl/8.5.0",
        "X-Http-Method": "POST",
        "X-Http-Path": "/",
        "X-Http-Query": "",
        "X-Http-Proto": "HTTP/1.1",
    }
    async with probe.call() as call:
        await call.start([headers["Accept"]], ["in"], ["out"])
        await call.data(b"7", JSON, headers=headers)
        await call.half_close()
        await call.gives(49)
