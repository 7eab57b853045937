"""`Http1`: one connection of HTTP/1.1, or of HTTP/1.0.

Theory. Requests are answered one after another; further bytes are read ahead, but parsed only after the response::

    state     what is awaited                  how long                then
    --------  -------------------------------  ----------------------  ----------------------------------------------
    IDLE      a head, or the rest of one       idle_s                  BUSY; the connection ends when time is up
    BUSY      the body, then the handler       body_s (`Exchange`)     WRITING, or STREAMING
    STREAMING the handler, maybe the body      any time; write_s       WRITING; the connection ends when time is up
    WRITING   the client takes the response    write_s for each part   LINGERING if the body is not here, else IDLE
    LINGERING the rest of a refused body       linger_s                IDLE
    ENDING    the client sees the last bytes   FAREWELL_S              the connection is closed

A connection whose first bytes are the preface of HTTP/2 is passed on to `Http2`; after a WebSocket handshake it is
passed on to a `SocketConnection`. One `Alarm` serves all states.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from invoker.core.http import Response, ResponseHead
from invoker.core.peers import peer_of
from invoker.transports.http.alarm import Alarm, Soon
from invoker.transports.http.app import FAULT, Handler, HttpApp
from invoker.transports.http.bodies import Chunks, Counted
from invoker.transports.http.cachedhead import CachedHead, Heads
from invoker.transports.http.connections import CLOSE_S, FAREWELL_BYTES, FAREWELL_S, Connections, State
from invoker.transports.http.heads import RefusedError
from invoker.transports.http.readcontrol import ReadControl
from invoker.transports.http.request import HIGH_BYTES, Request
from invoker.transports.http.writer import Writer
from invoker.transports.http.writing import response_bytes
from invoker.transports.sockets import ask_whether_alive, reset

log = logging.getLogger(__name__)

HandOver = Callable[[asyncio.Transport, bytes], None]

_STREAMING: Final = State.STREAMING  # used for each item, and looking up an enum member is slow in Python 3.11
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_NO_MORE: Final = Counted(0)
_IMPATIENT_S: Final = 1.0
"""Seconds to wait whether a client that was refused before ``100 Continue`` sends its body nevertheless."""
_WATCH_S: Final = 0.1
"""A client that has half-closed may wait for its response, or may have left. It counts as gone after this many
seconds."""
_GO_ON: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Http1(asyncio.Protocol):
    """One connection of HTTP/1.1 or HTTP/1.0.

    Args:
        app: Answers the requests.
        connections: The connections of the transport.
        hand_over: Takes a connection that speaks another protocol, with the bytes that were read.
        early: The bytes that were read before the connection came here.
    """

    _heads: Heads
    _read_control: ReadControl
    _writer: Writer

    def __init__(self, app: HttpApp, connections: Connections, hand_over: HandOver, early: bytes = b"") -> None:
        self._app = app
        self._connections = connections
        self._hand_over = hand_over
        self._early = early
        self._loop, self._settings = asyncio.get_running_loop(), app.settings
        self._transport: Any = None
        self._state = State.IDLE
        self._is_fresh, self._is_lost = True, False
        self._has_ended = False  # whether the client has ended its side of the connection
        self._ends = False  # whether the connection ends after the current response, or after the next one
        self._data = b""  # received bytes that are not yet parsed
        self._seen = self._dropped = 0  # bytes without the end of a head; bytes of a refused body
        self._request: Request | None = None
        self._left: Chunks | Counted = _NO_MORE  # the rest of the body that is still to come
        self._waits = False  # whether the client waits for 100
        self._alarm, self._soon = Alarm(), Soon()

    # The loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve the connection; asyncio calls it once."""
        self._transport = transport
        sock, tls = (transport.get_extra_info(name) for name in ("socket", "ssl_object"))
        is_local = sock.family == socket.AF_UNIX
        self._heads = Heads(self._app, is_local=is_local)
        self.peer = peer_of(transport.get_extra_info("peername"))
        self._read_control = ReadControl(self._transport, self.abort, patience_s=self._settings.write_s)
        if not is_local:
            ask_whether_alive(sock)
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            self.leave_to(self._hand_over)
            return
        self._writer = Writer(transport, self._alarm, self._settings.write_s, self.abort, self._written, self._go_on)
        self._connections.meet(self, is_new=not self._early)
        self._alarm.set(self._settings.idle_s, self._close)
        if self._early:
            self.data_received(self._early)

    def data_received(self, data: bytes) -> None:
        """Read requests from the bytes that have come."""
        state = self._state
        if state is State.ENDING:
            self._dropped += len(data)
            if self._dropped > FAREWELL_BYTES:
                self.abort()
            return
        self._data = self._data + data if self._data else data
        if state is State.IDLE:
            self._look()
        elif self._request is not None and not self._request.is_whole:
            self._bring()
        elif len(self._data) > HIGH_BYTES:
            self._read_control.shut()

    def eof_received(self) -> bool:
        """Note that the client sends no more: it has left, unless it waits for responses to earlier requests."""
        request, self._has_ended = self._request, True
        awaits = self._data if request is None else request.is_whole
        # TLS cannot be half closed.
        if self._state is State.ENDING or not awaits or not self._transport.can_write_eof():
            self._give_up()
            return False
        if self._state is not State.WRITING:
            self._alarm.set(_WATCH_S, self._give_up)
        return True

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """Drop the waiting bytes, and notify the request that the client is gone, since the connection is over."""
        self._is_lost, self._data = True, b""
        self._read_control.close()
        self._writer.drop()
        request = self._request
        if request is not None and not request.is_gone:
            request.leave()
        if request is None or request.task is None or request.task.done():
            self._connections.leave(self)
        self._connections.idle.pop(self, None)

    def pause_writing(self) -> None:
        """Hold the response, since the client reads too slowly, and watch whether it leaves."""
        self._writer.is_full = True
        if self._state is State.STREAMING and not self._has_ended:
            self._writer.watch()

    def resume_writing(self) -> None:
        """Continue the response, since the client has taken most of the written bytes."""
        self._writer.go_on()
        self._soon.do(self._go_on)  # asyncio 3.11 closes twice if `close` is called during `resume_writing`

    # The transport calls these.

    @property
    def has_unparsed(self) -> bool:
        """Whether bytes that came with the previous request wait for the next turn."""
        return self._soon.is_due and bool(self._data)

    def fileno(self) -> int:
        """The descriptor of the socket; negative once it is closed."""
        return -1 if self._is_lost else int(self._transport.get_extra_info("socket").fileno())

    def end_when_idle(self) -> None:
        """End now, or after the running request."""
        self._ends = True
        if self._state is State.IDLE:
            self._close()

    def abort(self) -> None:
        """End the connection now, without a last message to the client."""
        if self.fileno() >= 0:  # asyncio 3.11 fails if `abort` follows a `close` that waits for its last writes
            if self._state in (State.STREAMING, State.WRITING) and self._writer.is_bare:
                reset(self._transport.get_extra_info("socket"))  # otherwise this looks like the end of the body
            self._transport.abort()

    cut = abort

    # Heads.

    def _look(self) -> None:
        """Begin the next request if its head has come."""
        data, seen = self._data, self._seen
        if self._is_fresh and data[:1] == b"P":
            if data.startswith(PREFACE):
                self.leave_to(self._hand_over)
                return
            if PREFACE.startswith(data):
                return
        try:
            found = self._heads.read(data, seen)
        except RefusedError as refused:
            self._refuse(refused)
            return
        if found is None:
            self._seen = len(data)
            self._connections.idle[self] = None
            return
        known, end = found
        self._is_fresh = False
        self._data, self._seen = data[end:], 0
        self._begin(known)

    def _begin(self, known: CachedHead) -> None:
        head = known.head
        self._state = State.BUSY
        self._connections.idle.pop(self, None)
        if not self._has_ended:
            self._alarm.unset()
        request = self._request = Request(head, self, self._settings, self._app.driver.engine.memory, known.packed)
        self._ends = self._ends or not head.is_kept
        length, data = head.length, self._data
        if length is not None and length <= len(data) and length <= HIGH_BYTES:
            self._left, self._waits, self._data = _NO_MORE, False, data[length:]
            request.feed(data[:length], is_last=True)
        else:
            self._left, self._waits = Chunks() if length is None else Counted(length), head.waits
            self._bring()
            if request.is_gone:
                return  # the body of the request is refused
        handler = known.meet(request, self._app)
        if handler is not None:
            request.task = self._loop.create_task(self._answer(request, handler), name="request")
        elif not (request.is_whole or request.is_stream) and self._state is State.BUSY:
            self._connections.waiting[self] = None

    async def _answer(self, request: Request, handler: Handler) -> None:
        try:
            response = await self._app.answer(request, handler)
        except asyncio.CancelledError:
            response = None  # the client has left, or the transport has cut it; no other code cancels this task
        except Exception:  # a fault of a handler; its text must not reach the peer
            log.exception("a request failed")
            response = FAULT
        if self._is_lost:
            self._connections.leave(self)
        elif response is not None:
            request.respond(response)
        elif self._request is request and self._state in (State.BUSY, State.STREAMING):
            self.abort()

    # Bodies.

    def ask(self) -> None:
        """Read on, since the request waits for more of its body."""
        if self._waits:
            self._waits = False
            self._transport.write(_GO_ON)
        self._read_control.open()

    def _bring(self) -> None:
        """Give the request what has come of its body."""
        request, left, data = self._request, self._left, self._data
        assert request is not None
        has_begun, self._waits = self._waits and bool(data), self._waits and not data
        try:
            body = left.take(data)
        except RefusedError as refused:
            self._refuse(refused)
            return
        is_last, self._data = left.is_over, left.rest
        if is_last:
            self._connections.waiting.pop(self, None)
        if self._state in (State.BUSY, State.STREAMING):
            request.feed(body, is_last=is_last)
            if request.unread > HIGH_BYTES:
                self._read_control.shut(takes_rest=True)
            return
        request.is_whole = is_last  # the request is answered already
        if self._state is not State.LINGERING:
            return
        if is_last:
            self._next()
        elif has_begun:
            self._alarm.set(self._settings.linger_s, self.abort)

    # Responses.

    def answered(self, request: Request, response: Response) -> None:
        """Write the whole response of the request, after which the next request is read."""
        if self._is_lost:
            self._connections.leave(self)
        elif self._state is State.BUSY:  # otherwise the body of the request was refused
            self._state = State.WRITING
            self._ends = self._ends or response.close or self._waits or self._app.is_closing
            self._writer.whole(response, request, close=self._ends)

    def begun(self, request: Request, head: ResponseHead) -> None:
        """Write the head of a streamed response."""
        if self._state is not State.BUSY or self._is_lost:
            return
        self._state = State.STREAMING
        is_chunked = request.head.http_version != "1.0"
        self._ends = self._ends or not is_chunked or self._waits or self._app.is_closing
        self._writer.begin(head, request, close=self._ends, is_chunked=is_chunked)

    def streamed(self, data: bytes | Iterator[bytes]) -> bool:
        """Write a piece of the streamed body; returns whether the client takes more at once."""
        return self._state is not _STREAMING or self._is_lost or self._writer.write(data)

    def ended(self, *, is_whole: bool) -> None:
        """End a streamed response; if it is not whole, close the connection so that the client sees it."""
        if self._state is not State.STREAMING or self._is_lost:
            return
        if is_whole:
            self._state = State.WRITING
            self._writer.end()
        elif self._writer.is_bare:
            self.abort()
        else:
            self._writer.flush()
            self._close()

    def _written(self) -> None:
        assert self._request is not None
        if self._request.is_whole:
            self._next()
            return
        # Closing now would reset the connection, perhaps before the client has read the response.
        self._state = State.LINGERING
        self._connections.idle[self] = None
        self._alarm.set(*((_IMPATIENT_S, self._close) if self._waits else (self._settings.linger_s, self.abort)))
        self._read_control.open()

    def _next(self) -> None:
        """Continue with the next request, or close the connection."""
        self._request = None
        self._state = State.IDLE
        if self._ends or (self._has_ended and not self._data):
            self._close()
            return
        self._connections.idle[self] = None
        self._alarm.set(_WATCH_S if self._has_ended else self._settings.idle_s, self._give_up)
        if self._data:
            self._soon.do(self._go_on)  # let other tasks run between two requests of this connection
        self._read_control.open()

    def _go_on(self) -> None:
        """Do the next step of the connection, unless it was done meanwhile."""
        if self._is_lost or self._writer.is_full:
            return
        if self._state is State.WRITING:
            self._writer.pump()
        elif self._state is State.STREAMING and self._request is not None:
            if not self._has_ended:
                self._alarm.unset()
            self._request.has_room()
        elif self._state is State.IDLE and self._data:
            self._look()

    # The end.

    def _refuse(self, refused: RefusedError) -> None:
        """Answer bytes that are not a valid request, and ignore all later bytes."""
        log.debug("a connection is ended: %s", refused)
        if self._state in (State.IDLE, State.BUSY):  # otherwise the request is answered already
            self._transport.write(response_bytes(Response(refused.status, (), b"", close=True)))
        self._give_up(is_reading=True)

    def _give_up(self, *, is_reading: bool = False) -> None:
        """Close the connection, and end the running request."""
        request = self._request
        if self._state is State.STREAMING and self._writer.is_bare:
            self.abort()
        self._close(is_reading=is_reading)
        if request is not None:
            request.leave()

    def _close(self, *, is_reading: bool = False) -> None:
        """Close once everything is written. Until then drop received bytes: unread ones would reset the connection."""
        transport = self._transport
        is_reading = (is_reading or bool(self._data)) and not self._has_ended and transport.can_write_eof()
        self._state = State.ENDING
        self._connections.idle[self] = None
        self._data = b""
        if is_reading:
            with suppress(OSError):  # the client has reset the connection
                transport.write_eof()
            self._alarm.set(FAREWELL_S, self.abort)
            self._read_control.open()
        else:
            transport.close()  # `close` waits until the written bytes are taken, which a client can delay for ever
            self._alarm.set(CLOSE_S, self.abort)

    def leave_to(self, take: HandOver) -> None:
        """Pass the connection on to another protocol, with the bytes that were read."""
        self._alarm.close()
        self._connections.leave(self)
        self._read_control.open()
        data, self._data = self._data, b""
        take(self._transport, data)
