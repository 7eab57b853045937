"""One connection of a session over WebSocket: the wire of its reactor.

Each connection has a task that reads and one that writes. Reading stops when the reactor wants no more, until it asks
again; while the peer is slow, functions wait in `room`. A connection ends in one of three ways: the session closes (its
last frame is sent, then the code 1000), the session fails (its farewell, then the code of the error), or the peer is
gone (nothing more is sent).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from invoker.core.steps import Close
from invoker.doors.http.asgi import Receive, Scope, Send
from invoker.drive.driver import Driver
from invoker.drive.loop.sessions import SessionReactor, StoringSession
from invoker.errors import InternalError, InvocationError, LimitExceeded, ProtocolViolation, ShuttingDown

__all__ = ["SocketLine", "SocketSession", "SocketSettings"]

log = logging.getLogger(__name__)

_ROOM_BYTES = 256 * 1024
"""Bytes that may wait; whoever writes more waits until fewer do."""

_NORMAL, _GOING_AWAY, _PROTOCOL_ERROR, _TOO_BIG, _INTERNAL = 1000, 1001, 1002, 1009, 1011


class SocketSession(StoringSession, Protocol):
    """What a protocol offers to this door, besides translating."""

    last_frame: bytes
    """What is said before a normal end."""

    def farewell(self, error: InvocationError) -> list[bytes]:
        """What is said before an end with an error."""


@dataclass(frozen=True, slots=True)
class SocketSettings:
    """How connections are treated.

    Attributes:
        path: Where sessions are served.
        max_message_bytes: A longer message ends its session.
        sessions: At once; one more is refused with 503.
        ping_s: Between two pings.
        linger_s: How long the peer may take to close after us.
        write_s: How long it may take to read what was written, once its session is over.
        hard_bytes: Unread payload at which an invocation fails.
        window: Messages that sessions feed an input ahead of its function.
    """

    path: str = "/"
    max_message_bytes: int = 4 * 1024 * 1024
    sessions: int = 1000
    ping_s: float = 20.0
    linger_s: float = 2.0
    write_s: float = 60.0
    hard_bytes: int = 512 * 1024 * 1024
    window: int = 16


class SocketLine:
    """One connection.

    Args:
        driver: Runs the session's invocations.
        session: Translates.
        settings: Limits.
        scope: Of the connection, by ASGI.
        receive: Of the connection.
        send: Of the connection.
    """

    def __init__(
        self,
        driver: Driver,
        session: SocketSession,
        settings: SocketSettings,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self.is_gone = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self._driver = driver
        self._session = session
        self._settings = settings
        self._scope = scope
        self._receive = receive
        self._send = send
        self._timer: asyncio.TimerHandle | None = None
        self._out: deque[bytes] = deque()
        self._size = 0
        self._code = 0
        self._changed = asyncio.Event()  # something to write, or the end
        self._has_room = asyncio.Event()
        self._reads = asyncio.Event()
        self._has_room.set()
        self._reads.set()

    async def serve(self) -> None:
        """Run the session to its end."""
        settings = self._settings
        reactor = SessionReactor(
            self._session,
            self,
            self._driver,
            self._closed,
            hard_bytes=settings.hard_bytes,
            window=settings.window,
            fetch=_fetch,
        )
        from invoker.doors.http.hypersocket import bound_messages  # hypercorn is there by now, and not before

        bound_messages(self._send, settings.max_message_bytes, lambda: self._excess(reactor))
        reading = asyncio.create_task(self._read(reactor), name="socket")
        pinging: asyncio.Task[None] | None = None
        try:
            await self._send({"type": "websocket.accept"})
            pinging = asyncio.create_task(self._ping(reactor), name="pings")
            await self._write_out()
            if not self.is_gone:
                await self._send({"type": "websocket.close", "code": self._code})
                await asyncio.wait([reading], timeout=settings.linger_s)  # the peer closes as well
        finally:
            if pinging is not None:
                pinging.cancel()
            reading.cancel()
            self._lost(reactor)
            if self._timer is not None:
                self._timer.cancel()

    # The wire.

    def accepted(self) -> None:
        """There are no headers to be sent."""

    def ask(self) -> None:
        """Read again."""
        self._reads.set()

    def write(self, frame: Any) -> bool:
        """Send one frame; False when the next one should wait for `room`."""
        if not self.is_gone:
            self._out.append(frame)
            self._size += len(frame)
            self._changed.set()
            if self._size >= _ROOM_BYTES:
                self._has_room.clear()
        return self._has_room.is_set()

    async def room(self) -> None:
        """Wait until the peer has taken most of what was written."""
        await self._has_room.wait()

    def _closed(self, close: Close) -> None:
        """The session is over: write what is left, then close."""
        error = close.error
        self._code = self._code or _code(error)
        for frame in [self._session.last_frame] if error is None else self._session.farewell(error):
            self.write(frame)
        self._timer = asyncio.get_running_loop().call_later(self._settings.write_s, _abort, self._scope)
        self._changed.set()
        self._reads.set()

    def _excess(self, reactor: SessionReactor) -> None:
        if not self._code:
            self._code = _TOO_BIG
            reactor.fail(LimitExceeded(f"a message has more than {self._settings.max_message_bytes} bytes"))

    # The tasks.

    async def _read(self, reactor: SessionReactor) -> None:
        while True:
            await self._reads.wait()
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._lost(reactor)
                return
            if self._code:
                continue  # the session is over; only the peer's close is waited for
            data = message.get("bytes")
            if data is None:
                reactor.fail(ProtocolViolation("a text message was received; messages are binary"))
            elif not reactor.arrived(data):
                self._reads.clear()

    async def _write_out(self) -> None:
        """Write until the session is over and all is written, or the peer is gone."""
        out = self._out
        while not self.is_gone:
            if out:
                frame = out.popleft()
                await self._send({"type": "websocket.send", "bytes": frame})
                self._size -= len(frame)
                if self._size < _ROOM_BYTES // 2:
                    self._has_room.set()
            elif self._code:
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    async def _ping(self, reactor: SessionReactor) -> None:
        connection = self._scope.get("state", {}).get("connection")
        if connection is not None:
            from invoker.doors.http.hypersocket import keep_pinging

            await keep_pinging(self._send, self._settings.ping_s, lambda: connection.is_lost)
            self._lost(reactor)

    def _lost(self, reactor: SessionReactor) -> None:
        """Nobody is there any more."""
        if not self.is_gone:
            self.is_gone = True
            self._out.clear()
            self._size = 0
            self._changed.set()
            self._has_room.set()
            reactor.gone()


async def _fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:  # noqa: ARG001 - see `Fetching`
    raise InternalError("sessions of this door have nothing to fetch")


def _code(error: InvocationError | None) -> int:
    if error is None:
        return _NORMAL
    if isinstance(error, ShuttingDown):
        return _GOING_AWAY
    return _PROTOCOL_ERROR if isinstance(error, ProtocolViolation) else _INTERNAL


def _abort(scope: Scope) -> None:
    """The peer does not take what was written: the connection is cut."""
    connection = scope.get("state", {}).get("connection")
    if connection is not None:
        log.warning("a peer did not take the end of its session; its connection is cut")
        connection.abort()
