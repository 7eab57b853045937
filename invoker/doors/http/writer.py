"""`Writer`: writes the responses of one connection of HTTP/1.1, whole ones and streamed ones.

A whole response is written part by part, as the client takes them. The first piece of a streamed one leaves at once;
later ones leave when the loop has done what it does now, all in one chunk: a function that gives many values at once
costs one write, and nothing waits for a value that comes later. HTTP/1.0 knows no chunks; there the end of the
connection is the end of the body.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from invoker.core.http import Response, ResponseHead
from invoker.doors.http.alarm import Alarm
from invoker.doors.http.writing import (
    BODILESS,
    PIECE_BYTES,
    head_bytes,
    parts_of,
    response_bytes,
    size_of,
    stream_head_bytes,
)

__all__ = ["Writer"]

log = logging.getLogger(__name__)

_MOST_HELD: Final = 64 * 1024
"""Bytes of pieces that leave before the end of the turn."""
_LAST: Final = b"0\r\n\r\n"


class Writer:
    """Writes one response after another.

    Args:
        transport: Of the connection.
        alarm: Of the connection; it rings when the client does not take what is written.
        write_s: How long that may take.
        abort: Ends the connection.
        written: Called when all of a response is written.

    Attributes:
        is_full: Whether the client takes too little.
    """

    def __init__(
        self,
        transport: Any,
        alarm: Alarm,
        write_s: float,
        abort: Callable[[], None],
        written: Callable[[], None],
    ) -> None:
        self.is_full = False
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._alarm = alarm
        self._write_s = write_s
        self._abort = abort
        self._written = written
        self._parts: Iterator[bytes] = iter(())
        self._head = b""
        self._held: list[bytes] = []
        self._size = 0
        self._is_due = False
        self._is_chunked = self._is_mute = False

    def whole(self, response: Response, *, is_head: bool, close: bool, headers: tuple[tuple[str, str], ...]) -> None:
        """Write a whole response."""
        if is_head or response.status in BODILESS or size_of(response) <= PIECE_BYTES:
            self._transport.write(response_bytes(response, is_head=is_head, close=close, headers=headers))
        else:
            self._transport.write(head_bytes(response, close=close, headers=headers))
            self._parts = parts_of(response)
        self.pump()

    def pump(self) -> None:
        """Write the next part, as long as the client takes them."""
        while not self.is_full:
            part = next(self._parts, None)
            if part is None:
                self._written()
                return
            self._transport.write(part)
        self.watch()

    def begin(
        self, head: ResponseHead, *, is_head: bool, close: bool, is_chunked: bool, headers: tuple[tuple[str, str], ...]
    ) -> None:
        """Begin a streamed response; its head leaves with the first piece if that comes at once."""
        self._is_mute = is_head or head.status in BODILESS
        self._is_chunked = is_chunked and not self._is_mute
        self._head = stream_head_bytes(head, close=close, is_chunked=self._is_chunked, headers=headers)
        self._leave_soon()

    def write(self, data: bytes) -> bool:
        """Write a piece of a streamed response; whether the client takes more at once."""
        if data and not self._is_mute:
            self._held.append(data)
            self._size += len(data)
            if self._head or self._size >= _MOST_HELD:
                self._flush()
            else:
                self._leave_soon()
        return not self.is_full

    def end(self) -> None:
        """A streamed response is complete."""
        self._flush(_LAST if self._is_chunked else b"")
        self.pump()

    def flush(self) -> None:
        """Write now what waits for the end of the turn."""
        self._flush()

    def watch(self) -> None:
        """Give the client some time to take what is written."""
        self._alarm.set(self._write_s, self._not_taken)

    def _leave_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._leave)

    def _leave(self) -> None:
        self._is_due = False
        self._flush()

    def _flush(self, last: bytes = b"") -> None:
        held, head = self._held, self._head
        if not (held or head or last):
            return
        if held:
            body = held[0] if len(held) == 1 else b"".join(held)
            held.clear()
            self._size = 0
            if self._is_chunked:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            last = body + last
        self._head = b""
        self._transport.write(head + last if head else last)

    def _not_taken(self) -> None:
        log.warning("a client did not take its response within %s s", self._write_s)
        self._abort()
