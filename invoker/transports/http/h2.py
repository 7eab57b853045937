"""HTTP/2: `Http2` refuses what hypercorn would take, and `FrameRateLimit` bounds frames that ask for nothing.

A frame of nine bytes costs a server a thousand times what it costs its sender: the server parses it, answers it, or
begins a request that the next frame takes back. So each connection has an allowance for frames that are neither a
request nor a part of one. The allowance grows slowly with time, and by what is sent to the client, since a client that
takes a long response has to send WINDOW_UPDATEs. A client that exceeds it gets ENHANCE_YOUR_CALM (RFC 9113, 10.5).

The parser handles all that it is given before other tasks have a turn, so it is given a few frames at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RequestReceived
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hypercorn.events import Closed
from hypercorn.protocol.events import Body, StreamClosed
from hypercorn.protocol.h2 import BUFFER_HIGH_WATER, BUFFER_LOW_WATER, BufferCompleteError, H2Protocol, StreamBuffer
from priority.priority import MissingStreamError

from invoker.transports.http.h1 import PREFACE
from invoker.transports.http.inbox import Inboxes

__all__ = ["Buffer", "FloodError", "FrameRateLimit", "Http2"]

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _CONTINUATION = 0, 1, 3, 4, 9
_END_STREAM, _PADDED = 1, 8

_ALLOWANCE: Final = 1000.0
_RESET_FRAMES: Final = 2
"""RST_STREAM counts as this many frames, because a request was begun before it."""
_PER_SECOND: Final = 100.0
_BYTES_A_FRAME: Final = 1024
"""For each of these sent to the client it may send one more frame: some send two WINDOW_UPDATEs for each 4 KiB."""
_SETTING_BYTES: Final = 64
"""A SETTINGS frame counts once more for each of these bytes, because it may hold thousands of settings."""
_CONTINUATIONS: Final = 16
"""At most this many for one head: a frame has up to 16 KiB, and heads of more than 64 KiB are refused anyway."""
_HEAD_BYTES: Final = 128 * 1024
"""The most bytes of a head on the wire: it may have 64 KiB once decoded, and a client that encodes it badly sends twice
as many. Reading takes 0.3 us a byte, in one go."""
_PADDING: Final = 256
_AT_ONCE: Final = 16
"""Frames that are parsed in one turn: eight requests with their RST_STREAMs at most."""
_HEAD: Final = 9
_WINDOW_STEP: Final = 16 * 1024
"""The window of the connection is opened again in steps of this many bytes."""


class FloodError(Exception):
    """The client has used up its allowance."""


class FrameRateLimit:
    """Watches what one client sends, from the preface on.

    Args:
        clock: The clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._allowance = _ALLOWANCE
        self._counted_s = clock()
        self._continued = 0
        self._came = 0  # bytes of the head that comes now
        self._left = len(PREFACE)
        self._head = b""

    def sent(self, size: int) -> None:
        """Count bytes that went to the client."""
        self._allowance += size / _BYTES_A_FRAME

    def parts(self, data: bytes) -> Iterator[bytes]:
        """What came, in parts with a few frames each; they need not begin where frames begin.

        Raises:
            FloodError: Too many frames asked for nothing; what came before them was given.
        """
        now_s = self._clock()
        if self._allowance < _ALLOWANCE:
            self._allowance = min(_ALLOWANCE, self._allowance + (now_s - self._counted_s) * _PER_SECOND)
        self._counted_s = now_s
        begin = at = frames = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            step = _HEAD - len(self._head)
            head = self._head + data[at : at + step]
            at += step
            if len(head) < _HEAD:
                self._head = head
                break
            self._head = b""
            self._left = int.from_bytes(head[:3])
            self._count(head[3], head[4], self._left)
            frames += 1
            if frames == _AT_ONCE:
                yield data[begin:at]
                begin, frames = at, 0
        if begin < len(data):
            yield data[begin:]

    def _count(self, kind: int, flags: int, size: int) -> None:
        self._continued, self._came = (self._continued + 1, self._came + size) if kind == _CONTINUATION else (0, size)
        if self._continued > _CONTINUATIONS:
            raise FloodError(f"a head of more than {_CONTINUATIONS} CONTINUATION frames")
        if self._came > _HEAD_BYTES and self._continued:
            raise FloodError(f"a head of more than {_HEAD_BYTES} bytes")
        if kind == _HEADERS:
            return
        if kind == _DATA and (flags & _END_STREAM or size > (_PADDING if flags & _PADDED else 0)):
            return
        self._allowance -= _RESET_FRAMES if kind == _RST_STREAM else 1
        if kind == _SETTINGS:
            self._allowance -= size // _SETTING_BYTES
        if self._allowance < 0:
            raise FloodError("too many frames that ask for nothing")


class Buffer(StreamBuffer):
    """What waits for the window of one stream.

    Hypercorn's lets its writer go on whenever little is taken, and so for ever if the client opens its window by a
    byte, or not at all. Here little has to be left.
    """

    async def push(self, data: bytes) -> None:
        """Add bytes, and wait if there are many."""
        if self._complete:
            raise BufferCompleteError
        self.buffer.extend(data)
        await self._is_empty.clear()
        if len(self.buffer) >= BUFFER_HIGH_WATER:
            await self._paused.clear()
            await self._paused.wait()

    async def pop(self, max_length: int) -> bytes:
        """Take at most this many bytes."""
        data = bytes(self.buffer[:max_length])
        del self.buffer[:max_length]
        if len(self.buffer) < BUFFER_LOW_WATER:
            await self._paused.set()
        if not self.buffer:
            await self._is_empty.set()
        return data


class Http2(H2Protocol):
    """Refuses requests that hypercorn would take or fail at, and resets streams that are cut.

    It refuses CONNECT, a method that is not in capitals, which would be capitalised, and a path that is not ASCII.

    A stream whose body is not taken holds up nobody but its client; see `Inbox`. What comes behind the response to a
    stream is dropped, where hypercorn would end the connection.

    WebSocket over HTTP/2 (RFC 8441) is not offered, though hypercorn would: browsers then use HTTP/1.1 for it.
    """

    def __init__(self, app: Any, config: Any, context: Any, tasks: Any, *about: Any) -> None:
        self._inboxes = Inboxes(tasks, self._taken)
        super().__init__(app, config, context, self._inboxes, *about)  # type: ignore[arg-type]  # has what is called
        self._has_credit = asyncio.Event()
        self._unreturned = 0  # of the window of the connection
        del self.connection.local_settings[SettingCodes.ENABLE_CONNECT_PROTOCOL]

    async def initiate(self, headers: Any = None, settings: Any = None) -> None:
        """Begin the connection, and the task that opens its window."""
        await super().initiate(headers, settings)
        self.task_group.spawn(self._tell_credit)

    async def handle(self, event: Any) -> None:
        """Take bytes of the client, or its end."""
        await super().handle(event)
        if isinstance(event, Closed):
            self._has_credit.set()

    async def _handle_events(self, events: list[Event]) -> None:
        for one in events:
            if isinstance(one, RequestReceived) and not _is_right(one):
                with suppress(ProtocolError):  # the client has reset it
                    self.connection.reset_stream(one.stream_id, ErrorCodes.PROTOCOL_ERROR)
            elif isinstance(one, DataReceived):
                await self._received(one)
            else:
                await super()._handle_events([one])
        await self._flush()

    async def _create_stream(self, request: RequestReceived) -> None:
        self._inboxes.stream = request.stream_id
        await super()._create_stream(request)
        self.stream_buffers[request.stream_id] = Buffer(self.context.event_class)  # nobody has written yet
        if request.stream_ended is None and (b"expect", b"100-continue") in (request.headers or ()):
            with suppress(ProtocolError):  # the client has reset it
                self.connection.send_headers(request.stream_id, [(":status", "100")])

    async def _received(self, event: DataReceived) -> None:
        size = event.flow_controlled_length or 0
        self._unreturned += size
        if self._unreturned >= _WINDOW_STEP:  # a slow stream holds up only itself
            self.connection.increment_flow_control_window(self._unreturned)
            self._unreturned = 0
        stream = self.streams.get(event.stream_id)
        if stream is None:
            return  # it is answered already
        padding = size - len(event.data)
        if padding:
            self._taken(event.stream_id, padding)
        if event.data:
            await stream.handle(Body(event.stream_id, event.data))

    def _taken(self, stream_id: int, size: int) -> None:
        with suppress(ProtocolError, KeyError):  # the stream is over
            self.connection.increment_flow_control_window(size, stream_id)
            self._has_credit.set()

    async def _tell_credit(self) -> None:
        while not self.closed:
            await self._has_credit.wait()
            self._has_credit.clear()
            await self._flush()

    async def _send_data(self, stream_id: int) -> None:
        await super()._send_data(stream_id)
        stream = self.connection.streams.get(stream_id)
        if stream_id not in self.stream_buffers and stream is not None and not stream.closed:
            # RFC 9113, 8.1: the response is complete, and the client need not send the rest of its body.
            self.connection.reset_stream(stream_id, ErrorCodes.NO_ERROR)
            await self._flush()

    async def stream_send(self, event: Any) -> None:
        """Send something of a stream. One whose response is not complete is reset, where hypercorn would leave it."""
        if isinstance(event, StreamClosed):
            await self._reset(event.stream_id)
        await super().stream_send(event)

    async def _reset(self, stream_id: int) -> None:
        buffer = self.stream_buffers.get(stream_id)
        if buffer is None or buffer._complete:  # noqa: SLF001 - the property waits for what is to be sent
            return
        with suppress(ProtocolError):  # the client has reset it, or is gone
            self.connection.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
        await buffer.close()
        del self.stream_buffers[stream_id]
        with suppress(MissingStreamError):
            self.priority.remove_stream(stream_id)
        await self._flush()

    async def say_calm(self, why: str) -> None:
        """End the connection of a client that sends too much (RFC 9113, 10.5)."""
        self.connection.close_connection(ErrorCodes.ENHANCE_YOUR_CALM, additional_data=why.encode())
        await self._flush()


def _is_right(request: RequestReceived) -> bool:
    """Whether the method is one that there is, and the path such that hypercorn can read it."""
    fields = dict(request.headers or ())
    method, path = fields.get(b":method", b""), fields.get(b":path", b"")
    return bool(method == method.upper() != b"CONNECT" and path.isascii())
