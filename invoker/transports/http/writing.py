"""Responses in the form in which they are written: bytes for HTTP/1.1, header fields for HTTP/2.

Most responses of a process have the same head except for length and date, so the other lines are cached. The cache
keeps only a few, short entries, because peers and functions choose their content.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from invoker.core.http import Response, ResponseHead

ALWAYS: Final = (("X-Content-Type-Options", "nosniff"),)
"""Added to each response, so that a browser believes Content-Type and does not guess what the body is."""

BODILESS: Final = frozenset({204, 304})
"""Responses with these statuses must not have a Content-Length (RFC 9110, 8.6)."""

PIECE_BYTES: Final = 1 << 20
"""A long body is written in pieces of this many bytes, because each layer below copies its input."""

_PHRASES: Final = {int(status): status.phrase for status in HTTPStatus}
_KEPT: Final = 256
_KEPT_BYTES: Final = 512
_lines: dict[tuple[int, tuple[tuple[str, str], ...], Sequence[tuple[str, str]]], bytes] = {}


class _Clock:
    """The Date header line, made anew each second."""

    def __init__(self) -> None:
        self._now = (-1, b"")

    def line(self) -> bytes:
        second, line = self._now
        now = int(time.time())
        if now != second:
            line = f"date: {formatdate(now, usegmt=True)}\r\n".encode()
            self._now = (now, line)  # a single assignment, since several threads may do this at the same time
        return line


_clock = _Clock()


def response_bytes(
    response: Response, *, is_head: bool = False, close: bool = False, headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """The bytes of a whole response; a long one is better written by its parts.

    Args:
        response: The response.
        is_head: Whether the request was a HEAD, so that nothing but the head is written.
        close: Whether the connection ends after the response.
        headers: The headers to be added; they replace those of the response with the same name.
    """
    body = b"".join((response.body, *response.pieces)) if response.pieces else response.body
    head = head_bytes(response, len(body), close=close, headers=headers)
    return head if is_head or response.status in BODILESS else head + body


def head_bytes(
    response: Response, size: int, *, close: bool = False, headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """The head of a response with a body of this size, up to its empty line; as `response_bytes`."""
    lines = _lines.get((response.status, response.headers, headers)) or _lines_of(
        response.status, response.headers, headers
    )
    end = b"connection: close\r\n\r\n" if close or response.close else b"\r\n"
    if response.status in BODILESS:
        return b"%b%b%b" % (lines, _clock.line(), end)
    return b"%bcontent-length: %d\r\n%b%b" % (lines, size, _clock.line(), end)


def stream_head_bytes(
    head: ResponseHead, *, close: bool, is_chunked: bool, headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """The head of a response whose length is not yet known, up to its empty line; as `response_bytes`."""
    lines = _lines_of(head.status, head.headers, headers)
    coding = b"transfer-encoding: chunked\r\n" if is_chunked else b""
    return b"%b%b%b%b" % (lines, coding, _clock.line(), b"connection: close\r\n\r\n" if close else b"\r\n")


def response_fields(
    status: int, own: tuple[tuple[str, str], ...], size: int | None, headers: tuple[tuple[str, str], ...] = ()
) -> list[tuple[bytes, bytes]]:
    """The head of a response over HTTP/2.

    Args:
        status: The status.
        own: The headers of the response.
        size: The length of the body; None: it is not known yet.
        headers: The headers to be added; they replace those of the response with the same name.
    """
    fields = [(b":status", b"%d" % status), *fields_of(own, (*headers, *ALWAYS))]
    if size is not None and status not in BODILESS:
        fields.append((b"content-length", b"%d" % size))
    fields.append((b"date", _clock.line()[6:-2]))
    return fields


def size_of(response: Response) -> int:
    """The length of the whole body in bytes, pieces included."""
    size = len(response.body)
    return size + sum(map(len, response.pieces)) if response.pieces else size


def fields_of(given: Sequence[tuple[str, str]], ours: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """The header fields of a response; ``ours`` replace ``given`` ones of the same name, except `Vary`."""
    taken = {name.lower() for name, _ in ours} - {"vary"}
    if "access-control-allow-origin" in taken:
        taken.add("access-control-allow-credentials")  # a function must not decide which pages may send credentials
    kept = [one for one in given if one[0].lower() not in taken]
    return [_field(name.lower(), value) for name, value in (*kept, *ours)]


def _field(name: str, value: str) -> tuple[bytes, bytes]:
    """A field as it is written; name in lower case."""
    if value == "text/plain" and name == "content-type":
        # H-206: a codec's text/plain is UTF-8.
        value = "text/plain; charset=utf-8"
    return name.encode(), value.encode()


def parts_of(response: Response) -> Iterator[bytes]:
    """The body in parts of at most `PIECE_BYTES`: small pieces are joined, and large ones are cut."""
    small = bytearray()
    for piece in (response.body, *response.pieces):
        if len(small) + len(piece) <= PIECE_BYTES:
            small += piece
            continue
        if small:
            yield bytes(small)
        small = bytearray()
        view = memoryview(piece)
        for at in range(0, len(view), PIECE_BYTES):
            yield bytes(view[at : at + PIECE_BYTES])
    last = [bytes(small)]
    del small
    yield last.pop()  # otherwise this generator would keep copies until the client has taken the part


def _lines_of(status: int, own: tuple[tuple[str, str], ...], headers: tuple[tuple[str, str], ...]) -> bytes:
    """The cached header lines that do not change."""
    key = (status, own, headers)
    lines = _lines.get(key)
    if lines is None:
        parts = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode()]
        parts += [b"%b: %b\r\n" % one for one in fields_of(own, (*headers, *ALWAYS))]
        lines = b"".join(parts)
        if len(lines) <= _KEPT_BYTES:
            if len(_lines) >= _KEPT:
                _lines.clear()
            _lines[key] = lines
    return lines
