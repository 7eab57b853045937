"""Payloads: text, JSON, octets, forms, and payloads that a decoder must refuse. Catalogue 2.6."""

from __future__ import annotations

import json
from typing import Any

import grpc

from invoker_conformance.riff import frames
from invoker_conformance.riff.frames import CSV, FORM, JSON, OCTETS, TEXT
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import BIS, UE, UMT
from invoker_conformance.scenario import NotProvided, breaking, scenario

CLOUDEVENTS = "application/cloudevents+json"


async def _decodes(probe: Probe, media_type: str, payload: bytes, value: Any) -> None:
    """Check that a payload is decoded to this value, which comes back as JSON."""
    async with probe.call() as call:
        await call.one(payload, media_type)
        await call.gives(value)


async def _refuses(probe: Probe, media_type: str, payload: bytes, *mentions: str) -> None:
    """Check that a payload is refused as a Bad Input Signal."""
    async with probe.call() as call:
        await call.start()
        await call.data(payload, media_type)
        await call.fails(BIS, *mentions, after=0)


@scenario("R-070", "R-060", "R-031", function="echo")
async def json_values_round_trip(probe: Probe) -> None:
    """Objects, arrays, strings, numbers and booleans come back equal and in order."""
    values = [
        {"foo": 5},
        [1, [2, {}]],
        "text",
        "",
        7,
        -1,
        2**53,
        0.5,
        1e-9,
        True,
        False,
        {"nested": {"null": None}},
    ]
    await probe.call_gives(values, values)


@scenario("RT-22", "R-085", function="echo")
async def json_is_strict(probe: Probe) -> None:
    """NaN, Infinity, trailing data, an empty payload and other near misses are refused."""
    for payload in (b"NaN", b"Infinity", b"-Infinity", b"1 2", b'{"a":1}x', b"", b" ", b"'x'", b"[1,]", b"01", b"nul"):
        await _refuses(probe, JSON, payload)


@scenario("RT-23", "R-085", function="odd")
async def json_nan_out(probe: Probe) -> None:
    """NaN as a result cannot be serialised; the detail names output and type."""
    await _cannot_serialise(probe, "nan", JSON, "0", JSON)


@scenario("R-086", "R-104", "R-013", function="odd")
async def circular_result(probe: Probe) -> None:
    """A circular value cannot be serialised; the process stays alive."""
    await _cannot_serialise(probe, "circle", JSON)
    await probe.survives()


@scenario("R-099", "R-104", function="odd")
async def opaque_result(probe: Probe) -> None:
    """A value that no acceptable codec takes cannot be serialised, even for */*."""
    await _cannot_serialise(probe, "opaque", "*/*")


@scenario("RT-67", "R-087", "R-108", function="odd")
async def surrogate_in_text_result(probe: Probe) -> None:
    """A lone surrogate in a text/plain result cannot be serialised."""
    await _cannot_serialise(probe, "surrogate", TEXT)


@scenario("R-087", function="odd")
async def surrogate_in_json_result(probe: Probe) -> None:
    """A lone surrogate in a JSON result is escaped or refused."""
    async with probe.call() as call:
        await call.all("surrogate")
        got, ending = await call.rest()
        escaped = ending.code is grpc.StatusCode.OK and len(got) == 1 and json.loads(got[0].payload) == "\ud800"
        if not escaped and not UE.matches(ending.code, ending.detail):
            raise call.failure(f"{len(got)} frames, then {ending}", f"an escaped surrogate and OK, or {UE}")


@scenario("R-108", "R-013", function="odd")
async def header_that_is_not_wire_safe(probe: Probe) -> None:
    """A surrogate in a header value and an empty header name cannot be serialised."""
    await _cannot_serialise(probe, "surrogate header", JSON)
    await _cannot_serialise(probe, "nameless header", JSON)
    await probe.survives()


@scenario("R-108", function="odd")
async def header_value_that_is_no_text(probe: Probe) -> None:
    """A number as a header value goes out as its text."""
    async with probe.call() as call:
        await call.all("number header")
        frame = (await call.gives("x"))[0]
        if dict(frame.headers) != {"odd": "7"}:
            raise call.failure(f"headers {dict(frame.headers)}", "{'odd': '7'}")


async def _cannot_serialise(probe: Probe, kind: str, accept: str, *mentions: str) -> None:
    await probe.call_fails(UE, *mentions, sent=[kind], types=[accept])


@scenario("RT-24", "R-086", "R-013", function="echo")
async def json_too_deep(probe: Probe) -> None:
    """100,000 opening brackets are an ordinary decoding error."""
    await _refuses(probe, JSON, b"[" * 100_000)
    await probe.survives()


@scenario("R-086", function="echo")
async def json_huge_integer(probe: Probe) -> None:
    """An integer of 100,000 digits ends the call with a value or a decoding error, and the process stays alive."""
    async with probe.call() as call:
        await call.one(b"9" * 100_000)
        _, ending = await call.rest()
        refused = BIS.matches(ending.code, ending.detail) or UE.matches(ending.code, ending.detail)
        if ending.code is not grpc.StatusCode.OK and not refused:
            raise call.failure(f"{ending}", f"OK, {BIS} or {UE}")
    await probe.survives()


@scenario("RT-25", "R-083", "R-079", function="echo")
async def json_utf16(probe: Probe) -> None:
    """JSON in UTF-16 is read as its charset or its byte order mark says, and otherwise as little-endian."""
    text = '"€"'
    await _decodes(probe, f"{JSON};charset=UTF-16", text.encode("utf-16-le"), "€")
    await _decodes(probe, f"{JSON};charset=utf-16le", text.encode("utf-16-le"), "€")
    await _decodes(probe, f"{JSON};charset=utf-16be", text.encode("utf-16-be"), "€")
    with breaking("R-079"):
        await _decodes(probe, f"{JSON};charset=utf-16", b"\xfe\xff" + text.encode("utf-16-be"), "€")


@scenario("RT-26", "R-082", function="echo")
async def unknown_charset(probe: Probe) -> None:
    """A charset that JSON cannot have, or an unknown one, is a decoding error, not an unsupported type."""
    await _refuses(probe, f"{JSON};charset=US_ASCII", b"1")
    await _refuses(probe, f"{JSON};charset=utf-7", b"1")
    await _refuses(probe, f"{TEXT};charset=klingon", b"x")


@scenario("RT-27", "R-077", function="echo")
async def text_invalid_utf8(probe: Probe) -> None:
    """text/plain that is no UTF-8 is refused, not repaired."""
    await _refuses(probe, TEXT, b"\xff\xfe\xfd")


@scenario("R-077", function="echo")
async def byte_order_mark_is_stripped(probe: Probe) -> None:
    """A UTF-8 byte order mark is no part of the text."""
    await _decodes(probe, TEXT, b"\xef\xbb\xbfx", "x")
    await _decodes(probe, JSON, b'\xef\xbb\xbf"x"', "x")


@scenario("RT-28", "R-079", function="echo")
async def text_latin1(probe: Probe) -> None:
    """The charset parameter of text/plain is honoured."""
    await _decodes(probe, f"{TEXT};charset=iso-8859-1", b"\xe9", "é")


@scenario("RT-29", "R-080", function="octets")
async def text_encoding_for_bytes(probe: Probe) -> None:
    """Bytes in text/plain are taken as they are, or decoded if the encoding is base64 or hex."""
    for media_type, payload in (
        (TEXT, b"\x00\xffx"),
        (f"{TEXT};encoding=base64", b"AP94"),
        (f"{TEXT};encoding=hex", b"00ff78"),
    ):
        async with probe.call() as call:
            await call.one(payload, media_type, accept=OCTETS)
            await call.succeeds(b"\x00\xffx")


@scenario("R-080", function="octets")
async def text_encoding_is_symmetric(probe: Probe) -> None:
    """An output that is asked for with encoding=base64 comes as base64 text."""
    async with probe.call() as call:
        await call.one(b"\x00\xffx", OCTETS, accept=f"{TEXT};encoding=base64")
        await call.succeeds(b"AP94")


@scenario("R-081", function="echo")
async def charset_against_encoding(probe: Probe) -> None:
    """A charset is refused together with an encoding that names another charset."""
    await _refuses(probe, f"{TEXT};charset=utf-8;encoding=iso-8859-1", b"x")


@scenario("R-088", function="octets")
async def octets_are_exact(probe: Probe) -> None:
    """Every byte value and an empty payload come back unchanged."""
    payloads = (bytes(range(256)), b"", b"\x00" * 70_000)
    async with probe.call() as call:
        await call.start([OCTETS])
        for payload in payloads:
            await call.data(payload, OCTETS)
        await call.half_close()
        await call.succeeds(*payloads)


@scenario("R-091", function="echo")
async def form_both_ways(probe: Probe) -> None:
    """A form decodes to an object, repeated keys to a list; an object encodes to a form."""
    await _decodes(probe, FORM, b"a=1&b=x+y%21", {"a": "1", "b": "x y!"})
    await _decodes(probe, FORM, b"a=1&a=2&b=3", {"a": ["1", "2"], "b": "3"})
    async with probe.call() as call:
        await call.all({"a": "1", "b": "x y"}, types=[FORM])
        got, ending = await call.rest()
        if ending.code.name != "OK" or [frame.payload for frame in got] not in ([b"a=1&b=x+y"], [b"a=1&b=x%20y"]):
            raise call.failure(
                f"{[frame.payload for frame in got]}, then {ending}", "a=1&b=x+y or a=1&b=x%20y, then OK"
            )


@scenario("R-092", "R-098", function="echo")
async def cloudevents_keep_their_name(probe: Probe) -> None:
    """application/cloudevents+json is decoded as JSON, and encoded as JSON under its own name."""
    event = {"specversion": "1.0", "id": "7"}
    async with probe.call() as call:
        await call.one(frames.to_json(event), CLOUDEVENTS, accept=CLOUDEVENTS)
        frame = (await call.gives(event))[0]
        if frame.contentType.partition(";")[0] != CLOUDEVENTS:
            raise call.failure(f"contentType {frame.contentType!r}", CLOUDEVENTS)


@scenario("RT-75", "R-090", function="echo")
async def custom_codec_csv(probe: Probe) -> None:
    """A registered codec for text/csv decodes rows and takes part in negotiation."""
    async with probe.call() as call:
        await call.one(b"a,b\r\n1,2\r\n", CSV)
        got, ending = await call.rest()
        if UMT.matches(ending.code, ending.detail):
            raise NotProvided("a codec for text/csv")
        if ending.code is not grpc.StatusCode.OK or [call.json_of(each) for each in got] != [[["a", "b"], ["1", "2"]]]:
            raise call.failure(f"{len(got)} frames, then {ending}", "the rows as JSON, then OK")
    async with probe.call() as call:
        await call.all([["a", "b"], ["1", "2"]], types=[f"image/png, {CSV}"])
        frame = (await call.succeeds(b"a,b\r\n1,2\r\n"))[0]
        if frame.contentType.partition(";")[0] != CSV:
            raise call.failure(f"contentType {frame.contentType!r}", CSV)
