"""Readers of HTTP/1.1 bodies: with the length in the head (`Counted`), or chunked (`Chunks`), as strict as for heads.

Extensions and trailers of chunks are skipped, since no handler uses them (RFC 9112, 7.1).
"""

from __future__ import annotations

import re
from typing import Final

from invoker.transports.http.heads import FIELDS, MOST_BYTES, RefusedError

_LINE_BYTES: Final = 1024
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_BARE: Final = re.compile(rb"(?<!\r)\n")


class Counted:
    """Reads one body whose length is known; used like `Chunks`."""

    __slots__ = ("_left", "is_over", "rest")

    def __init__(self, size: int) -> None:
        self.is_over = size == 0
        self.rest = b""
        self._left = size

    def take(self, data: bytes) -> bytes:
        """The next bytes of the body in ``data``."""
        left = self._left
        self.is_over = len(data) >= left
        if len(data) == left:
            self._left = 0
            return data
        body, self.rest = data[:left], data[left:]
        self._left = left - len(body)
        return body


class Chunks:
    """Reads one chunked body from the bytes that come.

    Attributes:
        is_over: Whether the body has ended.
        rest: The bytes that came after the body, once it has ended.
    """

    __slots__ = ("_held", "_is_last", "_is_within", "_left", "is_over", "rest")

    def __init__(self) -> None:
        self.is_over = False
        self.rest = b""
        self._held = b""  # an incomplete line
        self._left = 0  # how many bytes of the current chunk are missing
        self._is_within = False  # whether the line end of a chunk is due
        self._is_last = False

    def take(self, data: bytes) -> bytes:
        """The next bytes of the payload in ``data``.

        Raises:
            RefusedError: The chunks are not well formed.
        """
        if self._held:
            data, self._held = self._held + data, b""
        parts: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left:
                part = data[at : at + self._left]
                parts.append(part)
                self._left -= len(part)
                at += len(part)
                continue
            following = self._ended(data, at) if self._is_last else self._line(data, at)
            if not following:
                self._held = data[at:]
                break
            at = following
            if self.is_over:
                self.rest = data[at:]
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _line(self, data: bytes, at: int) -> int:
        """Read the size line of a chunk, with the line end of the chunk before.

        Returns where the payload begins, or 0 if the line is not complete.
        """
        begin = at
        if self._is_within:
            if not b"\r\n".startswith(data[at : at + 2]):
                raise RefusedError("a chunk is longer than its size line says")
            begin += 2
        end = data.find(b"\r\n", begin)
        if end < 0:
            line = data[begin:].removesuffix(b"\r")
            if len(line) > _LINE_BYTES or (line and not _SIZE.fullmatch(line)):
                raise RefusedError("the size line of a chunk is malformed")
            return 0
        found = _SIZE.fullmatch(data, begin, end)
        if found is None or end - begin > _LINE_BYTES:
            raise RefusedError("the size line of a chunk is malformed")
        self._left = int(found[1], 16)
        self._is_within = True
        if self._left:
            return end + 2
        self._is_last = True
        return end  # before the line end, so that an empty line is found if there are no trailers

    def _ended(self, data: bytes, at: int) -> int:
        """Read over the trailers. Returns where the next request begins, or 0 if the trailers are not complete."""
        end = data.find(b"\r\n\r\n", at)
        if (len(data) if end < 0 else end) - at > MOST_BYTES:
            raise RefusedError("the trailers are too long", 431)
        if end < 0:
            if _BARE.search(data, at):
                raise RefusedError("a trailer ends with a bare LF")
            return 0
        if not FIELDS.fullmatch(data, at + 2, end + 4):
            raise RefusedError("a trailer is malformed")
        self.is_over = True
        return end + 4
