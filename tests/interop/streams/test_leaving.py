"""Bare sockets: requests that break off, readers that are slow, and clients that leave in the middle."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.interop.streams.conftest import Streamed

pytestmark = pytest.mark.timeout(30)

NDJSON = "application/x-ndjson"
_QUIET_S = 0.5


@contextmanager
def connected(streamed: Streamed) -> Iterator[socket.socket]:
    """A connection."""
    host, _, port = streamed.http.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as sock:
        yield sock


def _head(function: str, *lines: str, media_type: str = NDJSON) -> bytes:
    head = [f"POST /{function} HTTP/1.1", "Host: localhost", f"Content-Type: {media_type}", f"Accept: {NDJSON}", *lines]
    return "\r\n".join([*head, "", ""]).encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


CHUNKED = "Transfer-Encoding: chunked"
CUTS = {
    "behind a chunk": (CHUNKED, _chunk(b"1\n2\n")),
    "within a line": (CHUNKED, _chunk(b"1\n2\n") + _chunk(b"3")),
    "within a chunk": (CHUNKED, _chunk(b"1\n2\n") + b"20\r\n3\n4"),
    "before the last CRLF": (CHUNKED, _chunk(b"1\n2\n") + b"0\r\n"),
    "a short Content-Length": ("Content-Length: 100", b"1\n2\n"),
}


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("cut", sorted(CUTS))
@pytest.mark.parametrize("function", ["total", "sync_total"])
def test_H015_a_body_that_is_cut_is_not_committed(streamed: Streamed, function: str, cut: str, how: str) -> None:
    """Neither an orderly end of the connection nor a reset looks like the end of the body."""
    line, body = CUTS[cut]
    with connected(streamed) as sock:
        sock.sendall(_head(function, line) + body)
        streamed.waited("added", "2")
        if how == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        else:
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 16):
                pass
    notes = streamed.waited(function, "closed")
    assert streamed.notes("committed") == []
    assert "done" not in notes


@pytest.mark.parametrize("body", [b"x\r\n", b"-1\r\n", b"2\r\n3\n4\r\n"])
def test_H015_a_body_that_is_malformed_is_not_committed(streamed: Streamed, body: bytes) -> None:
    """Behind lines that were read well, a chunk that is none."""
    with connected(streamed) as sock:
        sock.sendall(_head("total", CHUNKED) + _chunk(b"1\n2\n"))
        streamed.waited("added", "2")
        sock.sendall(body)
        while sock.recv(1 << 16):
            pass
    streamed.waited("total", "closed")
    assert streamed.notes("committed") == []


def test_a_whole_body_is_committed(streamed: Streamed) -> None:
    """So the tests above could fail: the same lines, and the end."""
    with connected(streamed) as sock:
        sock.sendall(_head("total", CHUNKED) + _chunk(b"1\n2\n") + b"0\r\n\r\n")
        streamed.waited("committed", "3")
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            data += sock.recv(1 << 16)
        assert b"3\n" in data
    assert "done" in streamed.waited("total", "closed")


def test_H004_a_slow_reader_stops_the_function(streamed: Streamed) -> None:
    """It goes no further than the buffers of the way; when the reader goes on, so does it; when it leaves, it ends."""
    with connected(streamed) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        sock.sendall(_head("flood", "Content-Length: 0"))
        streamed.waited("flooded", "1")
        stood = _stand_still(streamed)
        assert stood < 400, "25 MiB"
        left = 32 << 20
        while left > 0:
            left -= len(sock.recv(1 << 16))
        assert len(streamed.notes("flooded")) > stood
    assert "done" not in streamed.waited("flood", "closed")


def test_H002_H012_an_error_is_no_cut_connection(streamed: Streamed) -> None:
    """The last chunk comes, and the connection answers the next request."""
    with connected(streamed) as sock:
        for _ in range(2):
            lines = (
                "POST /failing?after=1 HTTP/1.1",
                "Host: localhost",
                f"Accept: {NDJSON}",
                "Content-Length: 0",
                "",
                "",
            )
            sock.sendall("\r\n".join(lines).encode())
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                came = sock.recv(1 << 16)
                assert came, data
                data += came
            assert b'"error"' in data


def _stand_still(streamed: Streamed) -> int:
    """How often the function has yielded when it yields no more."""
    before = -1
    while (now := len(streamed.notes("flooded"))) != before:
        before = now
        time.sleep(_QUIET_S)
    return now
