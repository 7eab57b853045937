"""Tests of values to frames and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.codecs import builtin
from invoker.errors import DecodeError, NotAcceptable
from invoker.message import Message
from invoker.protocols.riff.client.frames import InputEncoder, Received


def encode(value: object, content_type: str = "", **headers: str) -> pb.InputFrame:
    encoder = InputEncoder(1, content_type=content_type, headers=headers, registry=builtin())
    return pb.InputSignal.FromString(encoder.encode(value)).data


def received(payload: bytes, media_type: str) -> Received:
    frame = pb.OutputFrame(payload=payload, contentType=media_type, headers={"X-Id": "7"}, resultIndex=2)
    return Received(frame, name="out", registry=builtin())


@pytest.mark.parametrize(
    ("value", "payload", "media_type"),
    [
        ("é", "é".encode(), "text/plain"),
        (b"\x00", b"\x00", "application/octet-stream"),
        (bytearray(b"\x01"), b"\x01", "application/octet-stream"),
        (memoryview(b"\x02"), b"\x02", "application/octet-stream"),
        (5, b"5", "application/json"),
        (None, b"null", "application/json"),
        ({"a": [1, True]}, b'{"a":[1,true]}', "application/json"),
    ],
)
def test_value_chooses_its_media_type(value: object, payload: bytes, media_type: str) -> None:
    """Text, bytes, and JSON for the rest."""
    frame = encode(value)
    assert (frame.payload, frame.contentType, frame.argIndex) == (payload, media_type, 1)


@pytest.mark.parametrize(
    ("value", "media_type", "payload"),
    [
        ("x", "application/json", b'"x"'),
        (b'{"a":1}', "application/json", b'{"a":1}'),
        ("é", "text/plain; charset=iso-8859-1", b"\xe9"),
        ("a,b", "text/x-rows; header=absent", b"a,b"),
        ("é", "text/x-rows;charset=iso-8859-1", b"\xe9"),
        (b"\x89PNG", "image/png", b"\x89PNG"),
    ],
)
def test_given_media_type_rules_and_travels_as_given(value: object, media_type: str, payload: bytes) -> None:
    """Bytes are sent as they are; text also under types without a codec."""
    frame = encode(value, media_type)
    assert (frame.payload, frame.contentType) == (payload, media_type)


def test_message_brings_its_own_headers_and_type() -> None:
    """They go over those of the call."""
    frame = encode(Message(b"1", headers={"A": "2"}, media_type="application/json"), "text/plain", A="1", B="1")
    assert (frame.payload, frame.contentType, dict(frame.headers)) == (b"1", "application/json", {"A": "2", "B": "1"})


def test_value_for_a_type_without_codec_is_refused() -> None:
    """The text says what would do."""
    with pytest.raises(NotAcceptable, match="no codec encodes dict as 'image/png' for input #1; give bytes"):
        encode({}, "image/png")


@pytest.mark.parametrize(
    ("payload", "media_type", "value"),
    [
        (b"5", "application/json", 5),
        (b"\xe9", "text/plain; charset=iso-8859-1", "é"),
        (b"\x00", "application/octet-stream", b"\x00"),
        (b"\x00", "", b"\x00"),
        (b"\x89", "image/png", b"\x89"),
        (b"\x89", "not a type", b"\x89"),
    ],
)
def test_value_is_decoded_by_its_type(payload: bytes, media_type: str, value: object) -> None:
    """And stays bytes where no codec knows the type."""
    out = received(payload, media_type)
    assert out.value == value
    assert (out.payload, out.media_type, out.index, out.name, out.headers["x-id"]) == (
        payload,
        media_type,
        2,
        "out",
        "7",
    )


def test_payload_is_there_when_the_value_is_not() -> None:
    """A payload that is not what its type says fails on `value` only."""
    out = received(b"{", "application/json")
    assert out.payload == b"{"
    with pytest.raises(DecodeError):
        _ = out.value


def test_decode_into_a_type() -> None:
    """As the parameters of functions are."""

    @dataclass
    class Point:
        x: int
        y: int

    assert received(b'{"x":1,"y":2}', "application/json").decode(Point) == Point(1, 2)


def test_value_is_decoded_once() -> None:
    """The same object each time."""
    out: Any = received(b"[]", "application/json")
    assert out.value is out.value


def test_text_of_a_malformed_media_type_is_utf_8() -> None:
    """The server judges the type."""
    assert encode("\xe9", "text").payload == "\xe9".encode()


def test_a_received_value_shows_its_output_and_no_payload() -> None:
    """By index, and by name if it has one."""
    one = received(b"secret", "text/plain")
    assert repr(one) == "<Received output 2 'out': text/plain, 6 bytes>"
    one.name = ""
    assert repr(one) == "<Received output 2: text/plain, 6 bytes>"
