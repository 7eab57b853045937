"""`invoker.transports.http.packing`: which responses leave packed, and that they can be read."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.http import RequestHead, Response
from invoker.transports.http.codings import GZIP, IDENTITY, PACKED, PLAIN, ZSTD, Choice, zstd_module
from invoker.transports.http.packing import LEAST_BYTES, Packer, coding_for, headers_for, is_worth, not_modified, pack

JSON = ("Content-Type", "application/json")
ASKED = Choice(GZIP)
FORCED = Choice(GZIP, is_forced=True)
LONG = b"[" + b"1, " * 1000 + b"1]"


def reader(coding: str) -> Callable[[bytes], bytes]:
    """Unpacks a stream as a browser does: what it has got is shown at once."""
    if coding == GZIP:
        return zlib.decompressobj(31).decompress
    unpack: Callable[[bytes], bytes] = zstd_module().ZstdDecompressor().decompress
    return unpack


@pytest.mark.parametrize("coding", PACKED)
def test_H132_a_packed_response_is_the_same_when_unpacked(coding: str) -> None:
    """It says how it is packed, and that this depends on the client."""
    response = pack(Response(200, (JSON,), LONG[:100], (LONG[100:200], memoryview(LONG)[200:])), coding)
    assert response.headers == (JSON, ("Content-Encoding", coding), ("Vary", "Accept-Encoding"))
    assert len(response.body) < 200
    assert not response.pieces
    assert reader(coding)(response.body) == LONG


def test_H132_short_responses_leave_as_they_are() -> None:
    """They would hardly become shorter; a client that takes nothing unpacked gets them packed."""
    response = Response(200, (JSON,), LONG[: LEAST_BYTES - 1])
    for choice in (ASKED, PLAIN):
        assert coding_for(response, choice, LEAST_BYTES - 1) is None
        assert coding_for(response, choice, LEAST_BYTES) == choice.coding
    assert coding_for(response, FORCED, 1) == GZIP


@pytest.mark.parametrize(
    "content_type",
    [
        "text/html", "TEXT/plain; charset=utf-8", "text/event-stream", "application/json", "image/svg+xml",
        "application/problem+json", "application/cloudevents+json", "application/x-ndjson",
        "multipart/mixed; boundary=x", "application/vnd.graphpipe.tensor", "application/x-npy", "application/xml",
    ],
)  # fmt: skip
def test_H132_media_types_that_become_shorter_are_packed(content_type: str) -> None:
    """Text, JSON, XML, arrays and streams of them."""
    assert is_worth(content_type)
    assert coding_for(Response(200, (("content-type", content_type),), LONG), ASKED, len(LONG)) == GZIP


@pytest.mark.parametrize(
    "content_type",
    ["image/png", "image/jpeg", "audio/mpeg", "video/mp4", "application/zip", "application/gzip", "font/woff2", "",
     "application/octet-stream", "application/grpc-web+json", "application/connect+json", "application/pdf"],
)  # fmt: skip
def test_H132_media_types_that_do_not_are_left(content_type: str) -> None:
    """They are packed already, nobody knows what they are, or they pack their own frames."""
    assert not is_worth(content_type)
    assert coding_for(Response(200, (("Content-Type", content_type),), LONG), ASKED, len(LONG)) is None


@pytest.mark.parametrize(
    "header",
    [("Content-Encoding", "br"), ("content-encoding", "identity"), ("Content-Range", "bytes 0-9/10"),
     ("Cache-Control", "public, no-transform"), ("cache-control", "NO-TRANSFORM"), ("Repr-Digest", "sha-256=:x:"),
     ("Content-Digest", "sha-256=:x:")],
)  # fmt: skip
def test_H132_headers_of_a_function_forbid_it(header: tuple[str, str]) -> None:
    """What a function has packed, or vouches for byte by byte, leaves as it gave it."""
    for choice in (ASKED, PLAIN, FORCED):
        assert coding_for(Response(200, (JSON, header), LONG), choice, len(LONG)) is None
    assert coding_for(Response(200, (JSON, ("Cache-Control", "no-transformers")), LONG), ASKED, len(LONG)) == GZIP


@pytest.mark.parametrize("status", [204, 205, 304])
def test_H132_a_response_without_body_is_left(status: int) -> None:
    """There is nothing to pack."""
    assert coding_for(Response(status, (JSON,), b""), FORCED, 0) is None


def test_H132_a_response_that_would_be_packed_says_so_to_caches() -> None:
    """Also where this client gets it unpacked."""
    response = pack(Response(201, (JSON, ("ETag", '"a"')), LONG, close=True), IDENTITY)
    assert response == Response(201, (JSON, ("ETag", '"a"'), ("Vary", "Accept-Encoding")), LONG, close=True)


def test_H133_a_strong_etag_becomes_weak_where_the_bytes_are_others() -> None:
    """RFC 9110, 8.8.1; a weak one stays, and lengths and ranges of the unpacked body are not told."""
    told = headers_for((JSON, ("ETag", '"a"'), ("Accept-Ranges", "bytes"), ("content-length", "5")), GZIP)
    assert told == (JSON, ("ETag", 'W/"a"'), ("Content-Encoding", GZIP), ("Vary", "Accept-Encoding"))
    assert ("etag", 'W/"a"') in headers_for((("etag", 'W/"a"'),), GZIP)


@pytest.mark.parametrize(
    ("had", "etag"), [('"a"', '"a"'), ('W/"a"', 'W/"a"'), ('"b", W/"a"', 'W/"a"'), ('W/"b", "a"', '"a"'), ("*", '"a"')]
)
def test_H133_a_304_has_the_etag_that_the_client_has(had: str, etag: str) -> None:
    """So that a cache finds what it has stored (RFC 9111, 4.3.4)."""
    head = RequestHead("GET", "/", headers=[("if-none-match", had)])
    assert dict(not_modified(Response(304, (("ETag", '"a"'), JSON), b""), head).headers)["ETag"] == etag


@pytest.mark.parametrize("coding", PACKED)
@given(items=st.lists(st.binary(max_size=100), max_size=20))
def test_H132_items_of_a_stream_can_be_read_at_once(coding: str, items: list[bytes]) -> None:
    """Each is there when it was flushed, not only at the end."""
    packer, read = Packer(coding), reader(coding)
    for one in items:
        assert read(packer.pack(one) + packer.flush()) == one
    assert read(packer.end()) == b""


def test_without_zstd_there_is_gzip() -> None:
    """zstd needs Python 3.14, or a package."""
    assert PACKED in ((GZIP,), (ZSTD, GZIP))
