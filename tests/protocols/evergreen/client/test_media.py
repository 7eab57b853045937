"""Tests of values to bytes and back, and of metadata."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import pytest
from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.duration_pb2 import Duration

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.codecs import builtin
from invoker.errors import NotAcceptable
from invoker.protocols.evergreen.client.media import (
    charset_of,
    decode,
    encode,
    headers_of,
    is_bytes,
    is_text,
    metadata_of,
)
from invoker.protocols.evergreen.wire import is_marker

REGISTRY = builtin()


@dataclass
class Row:
    name: str


@pytest.mark.parametrize(
    ("value", "media_type", "payload", "becomes"),
    [
        ("日", "", "日".encode(), "text/plain"),
        ("é", "text/csv;charset=latin-1", b"\xe9", "text/csv;charset=latin-1"),
        ("x", "application/json", b'"x"', "application/json"),
        (b"\x00", "image/png", b"\x00", "image/png"),
        (memoryview(b"ab"), "", b"ab", "application/octet-stream"),
        (Row("a"), "", b'{"name":"a"}', "application/json"),
        (None, "", b"null", "application/json"),
    ],
)
def test_values_choose_their_type(value: object, media_type: str, payload: bytes, becomes: str) -> None:
    """Unless one is given."""
    assert encode(value, media_type, REGISTRY) == (payload, becomes)


def test_type_without_codec_wants_bytes() -> None:
    """And says so."""
    with pytest.raises(NotAcceptable, match="no codec encodes dict as 'image/png'; give bytes"):
        encode({}, "image/png", REGISTRY)


@pytest.mark.parametrize(
    ("payload", "media_type", "value"),
    [
        (b"a", "text/markdown", "a"),
        (b"a", "application/x-latex", "a"),
        (b"[1]", "application/json", [1]),
        (b"\xff", "image/png", b"\xff"),
        (b"a", "nonsense", b"a"),
    ],
)
def test_leaves_are_decoded_by_their_type(payload: bytes, media_type: str, value: object) -> None:
    """E-046: text of any kind is text; what has no codec stays bytes."""
    assert decode(payload, media_type, REGISTRY) == value


def test_kinds_of_types() -> None:
    """What may be read piece by piece, and what says something about the conversation only."""
    assert is_text("text/plain; charset=utf-8")
    assert not is_text("application/json")
    assert is_bytes("image/png", REGISTRY)
    assert is_bytes("application/octet-stream", REGISTRY)
    assert not is_bytes("application/json", REGISTRY)
    assert not is_bytes("text/markdown", REGISTRY)
    assert is_marker("application/x-protobuf; type=EndOfTurn")
    assert not is_marker("application/x-protobuf; type=google.rpc.Status")
    assert charset_of("text/plain; charset=no-such") == "utf-8"


def test_headers_travel_as_metadata_and_back() -> None:
    """All four of them."""
    packed = PackedAny()
    packed.Pack(Duration(seconds=3))
    headers = {
        "role": "user",
        "original-file-name": "a.txt",
        "capture-time": "2026-01-31T12:00:00Z",
        "experimental": base64.b64encode(packed.SerializeToString()).decode(),
    }
    metadata = metadata_of("text/plain", headers)
    assert metadata.mimetype == "text/plain"
    assert metadata.experimental[0] == packed
    assert dict(headers_of(metadata)) == headers
    assert headers_of(pb.ChunkMetadata()) == {}
    metadata.capture_time.seconds = 1 << 60  # not a date
    assert set(headers_of(metadata)) == {*headers} - {"capture-time"}


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"X-Id": "7"}, "header 'X-Id' cannot travel with a chunk"),
        ({"capture-time": "yesterday"}, "RFC 3339"),
        ({"experimental": "?"}, "base64"),
    ],
)
def test_headers_that_cannot_travel(headers: dict[str, str], says: str) -> None:
    """Are refused before anything is sent."""
    with pytest.raises(ValueError, match=says):
        metadata_of("text/plain", headers)
