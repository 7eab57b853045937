"""`Writer`: writes the responses of a connection of HTTP/1.1, or of a stream of HTTP/2, whole ones and streamed ones.

A whole response is written part by part, as the client takes them. The first piece of a streamed response is sent at
once; later ones are sent at the end of the loop's turn, all in one chunk: a function that gives many values at once
costs one write, and nothing waits for a value that comes later. HTTP/1.0 has no chunks; there the end of the connection
ends the body. HTTP/2 has frames of its own for heads and for the ends of bodies, so only the bytes of its bodies are
written here. Packed pieces are flushed at the end of each turn, so that the client can unpack them, and long pieces are
packed in several turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from invoker.core.http import Response, ResponseHead
from invoker.transports.http.alarm import Alarm
from invoker.transports.http.packing import Packer
from invoker.transports.http.request import Request
from invoker.transports.http.writing import (
    BODILESS,
    PIECE_BYTES,
    head_bytes,
    parts_of,
    response_bytes,
    size_of,
    stream_head_bytes,
)

log = logging.getLogger(__name__)

_MOST_HELD: Final = 64 * 1024
"""Once the pieces have this many bytes, they are sent before the end of the turn."""
_MADE_BYTES: Final = 128 * 1024
"""How many bytes of a long response are made in one turn."""
_LAST: Final = b"0\r\n\r\n"


class Writer:
    """Writes one response after another.

    Args:
        transport: The transport of the connection.
        alarm: The alarm of the connection; it fires when the client does not take the written bytes in time.
        write_s: Seconds that the client may take for the written bytes.
        abort: Ends the connection.
        written: Called when all of a response is written.
        has_room: Called when more of a streamed response may be written, since the client has taken enough.

    Attributes:
        is_full: Whether the client takes too little.
        is_bare: Whether the end of the connection ends the body.
    """

    def __init__(
        self,
        transport: Any,
        alarm: Alarm,
        write_s: float,
        abort: Callable[[], None],
        written: Callable[[], None],
        has_room: Callable[[], None],
    ) -> None:
        self.is_full = self.is_bare = False
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._alarm = alarm
        self._write_s = write_s
        self._abort = abort
        self._written = written
        self._has_room = has_room
        self._request: Request | None = None
        self._parts: Iterator[bytes] = iter(())
        self._head = b""
        self._held: list[bytes] = []
        self._size = 0
        self._is_due = False
        self._is_chunked = self._is_mute = self._is_ending = False
        self._packer: Packer | None = None
        self._queue: deque[memoryview] = deque()  # the pieces that are not packed yet
        self._long: deque[Iterator[bytes]] = deque()  # iterators whose parts are not made yet
        self._is_making = False  # whether a thread is making one of these parts

    def whole(self, response: Response, request: Request, *, close: bool) -> None:
        """Write a whole response, in one piece if it is short."""
        self._request = request
        if request.untaken is not None:
            request.untaken.part()
        is_head, headers = request.head.method == "HEAD", request.headers
        size = size_of(response) if response.pieces else len(response.body)
        if is_head or response.status in BODILESS or size <= PIECE_BYTES:
            self._transport.write(response_bytes(response, is_head=is_head, close=close, headers=headers))
        else:
            self._transport.write(head_bytes(response, size, close=close, headers=headers))
            self._parts = parts_of(response)
        self.pump()

    def body(self, response: Response, request: Request) -> None:
        """Write the body of a whole response, whose head was sent."""
        self._request = request
        if request.untaken is not None:
            request.untaken.part()
        if not (request.head.method == "HEAD" or response.status in BODILESS):
            self._parts = parts_of(response)
        self.pump()

    def go_on(self) -> None:
        """Continue to write, since the client takes enough again."""
        self.is_full = False
        if self._long:
            self._leave_soon()

    def pump(self) -> None:
        """Write parts as long as the client takes them."""
        if self._packer is not None or self._long or self._is_making:
            return  # some pieces are still to be packed or made
        while not self.is_full:
            part = next(self._parts, None)
            if part is None:
                request, self._request = self._request, None
                if request is not None and request.untaken is not None:
                    request.untaken.take()
                self._written()
                return
            self._transport.write(part)
        self.watch()

    def begin(
        self, head: ResponseHead, request: Request, *, close: bool, is_chunked: bool, is_headed: bool = False
    ) -> None:
        """Begin a streamed response; unless its head was sent, it is sent with the first piece, or soon without one."""
        self._request = request
        self._is_mute = request.head.method == "HEAD" or head.status in BODILESS
        self._is_chunked = is_chunked and not self._is_mute
        self.is_bare = not (is_chunked or self._is_mute)
        self._packer, self._is_ending = None if self._is_mute else request.packer, False
        self._long.clear()
        if not is_headed:
            self._head = stream_head_bytes(head, close=close, is_chunked=self._is_chunked, headers=request.headers)
            self._leave_soon()

    def write(self, data: bytes | Iterator[bytes]) -> bool:
        """Write a piece of a streamed response, or parts of a long one; True if the client takes more at once."""
        if not isinstance(data, bytes) or ((self._long or self._is_making) and data):
            if not self._is_mute:
                self._long.append(iter((data,)) if isinstance(data, bytes) else data)
                self._leave_soon()
        elif data and not self._is_mute:
            self._size += len(data)
            if self._packer is not None:
                self._queue.append(memoryview(data))
                if self._head:
                    self._squeeze(self._packer, _MOST_HELD)
                else:
                    self._leave_soon()
            else:
                self._held.append(data)
                if self._head or self._size >= _MOST_HELD:
                    self._flush()
                else:
                    self._leave_soon()
        return not (self.is_full or self._size >= _MOST_HELD or self._long or self._is_making)

    def end(self) -> None:
        """End a streamed response, which is complete, after the bytes that still wait."""
        if self._has_more:
            self._is_ending = True
        elif self._packer is not None:
            self._is_ending = True
            self._squeeze(self._packer, _MOST_HELD)
        else:
            self._flush(_LAST if self._is_chunked else b"")
            self.pump()

    def flush(self) -> None:
        """Write the pieces that wait for the end of the turn, but no parts that are not made yet."""
        self._long.clear()
        if self._packer is not None:
            self._squeeze(self._packer, self._size)
        else:
            self._flush()

    def drop(self) -> None:
        """Drop the unwritten bytes and the alarm, since the connection is lost."""
        self._alarm.close()
        self._taken()
        self._request = None
        self._parts = iter(())
        self._held.clear()
        self._queue.clear()
        if not self._is_making:  # otherwise a thread still works on it, and `_has_made` clears it
            self._long.clear()

    def watch(self) -> None:
        """Give the client some time to take the written bytes."""
        self._alarm.set(self._write_s, self._not_taken)

    def _leave_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._leave)

    def _leave(self) -> None:
        self._is_due = False
        if self._packer is not None:
            self._squeeze(self._packer, _MOST_HELD)
        else:
            self._flush()
        if self._long and not self._queue:
            self._take()

    def _take(self) -> None:
        """Make and write some of a long piece; a packed one in a thread, since packing takes longer."""
        if self._transport.is_closing():
            self._long.clear()
        elif self._is_making or self.is_full:
            return
        elif self._packer is not None:
            self._is_making = True
            making = self._loop.run_in_executor(None, _made, self._long, self._packer)
            making.add_done_callback(self._has_made)
        else:
            try:
                self._held.append(_made(self._long))
            except Exception as error:  # noqa: BLE001 - the code that makes the part may raise anything
                self._fail(error)
                return
            self._flush()
            self._took()

    @property
    def _has_more(self) -> bool:
        """Whether a long piece is not completely written; later pieces wait for it."""
        return bool(self._long) or self._is_making

    def _fail(self, error: Exception) -> None:
        """Break off the response after an error, so that it does not look complete."""
        log.error("a response failed", exc_info=error)
        self._long.clear()
        self._abort()

    def _has_made(self, making: asyncio.Future[bytes]) -> None:
        self._is_making = False
        if self._transport.is_closing():
            self._long.clear()
            return
        try:
            self._held.append(making.result())
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)
            return
        self._flush()
        self._took()

    def _took(self) -> None:
        if self._long:
            if not self.is_full:
                self._leave_soon()
            elif self._is_ending:
                self.watch()
        elif self._is_ending:
            self.end()
        else:
            self._taken()
            self._has_room()

    def _taken(self) -> None:
        """Release the count of long pieces, since the client has taken all of them, or will never take the rest."""
        if self._request is not None and self._request.untaken is not None:
            self._request.untaken.take()

    def _squeeze(self, packer: Packer, most: int) -> None:
        """Pack the written bytes, and send them; if they are many, some in each turn, since packing takes long."""
        queue, was_full = self._queue, self._size >= _MOST_HELD
        while queue and most > 0:
            piece = queue.popleft()
            if len(piece) > most:
                queue.appendleft(piece[most:])
                piece = piece[:most]
            most -= len(piece)
            self._size -= len(piece)
            self._held.append(packer.pack(piece))
        if queue:
            self._flush()
            self._leave_soon()
        elif self._is_ending and not self._long:
            self._packer = None
            self._held.append(packer.end())
            self.end()
        else:
            self._held.append(packer.flush())
            self._flush()
        if was_full and self._size < _MOST_HELD:
            self._has_room()

    def _flush(self, last: bytes = b"") -> None:
        held, head = self._held, self._head
        if not (held or head or last):
            return
        if held:
            body = held[0] if len(held) == 1 else b"".join(held)
            held.clear()
            if self._packer is None:
                self._size = 0
            if self._is_chunked and body:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            last = body + last
        self._head = b""
        self._transport.write(head + last if head else last)

    def _not_taken(self) -> None:
        log.warning("a client did not read its response within %s s", self._write_s)
        self._abort()


def _made(long: deque[Iterator[bytes]], packer: Packer | None = None) -> bytes:
    """The next bytes of long pieces, packed so that the client can read them; finished pieces are removed."""
    parts: list[bytes] = []
    size = 0
    while long and size < _MADE_BYTES:
        part = next(long[0], None)
        if part is None:
            long.popleft()
            continue
        size += len(part)
        parts.append(part if packer is None else packer.pack(part))
    if packer is not None:
        parts.append(packer.flush())
    return b"".join(parts)
