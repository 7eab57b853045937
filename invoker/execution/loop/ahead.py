"""`AheadReactor`: a conversation whose function may run ahead of a slow peer, up to a bound in bytes.

The session says how far: its ``ahead_bytes``. With 0 it is a `Reactor` like any other, and the function waits for the
peer. Otherwise frames for which the wire has no room wait here, in order, and a task writes them as soon as there is
room. When more bytes wait than allowed, the invocation ends; the session sends the error after all values that were
given before. A single value that is larger than the bound makes the function wait until it is written.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from invoker.core.invocation import Invocation
from invoker.core.session import Session
from invoker.core.steps import Close
from invoker.errors import LimitExceeded, StopInvocation
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.wire import Wire
from invoker.message import Message


class BufferFull(LimitExceeded):
    """The peer is so slow that more frames would wait than allowed.

    Attributes:
        details: Details that a protocol may report.
    """

    def __init__(self, most: int) -> None:
        super().__init__(f"the caller reads too slowly: more than {most} bytes wait to be sent")
        self.details = {"code": "stream_buffer", "limit": str(most)}


class AheadSession(Session, Protocol):
    """A session that says how far its function may run ahead."""

    ahead_bytes: int


class AheadReactor(Reactor):
    """One session on one wire; see `Reactor`."""

    def __init__(
        self,
        session: AheadSession,
        wire: Wire,
        driver: Driver,
        on_close: Callable[[Close], None],
        *,
        deadline: float | None = None,
    ) -> None:
        self._ahead = _Ahead(session, wire, driver, on_close)
        super().__init__(session, self._ahead, driver, self._ahead.close, deadline=deadline)

    def emitted(self, invocation: Invocation, index: int, message: Message[bytes]) -> Awaitable[None] | None:
        """Send one output, or let it wait."""
        room = super().emitted(invocation, index, message)
        if self._ahead.is_too_much:
            if len(message.payload) > self._ahead.session.ahead_bytes:
                return self._ahead.empty()
            self.finished(invocation, BufferFull(self._ahead.session.ahead_bytes))
            raise StopInvocation
        return room


class _Ahead:
    """Wraps the wire of an `AheadReactor`: frames for which the real wire has no room wait here."""

    def __init__(self, session: AheadSession, wire: Wire, driver: Driver, on_close: Callable[[Close], None]) -> None:
        self.session = session
        self._wire = wire
        self._driver = driver
        self._on_close = on_close
        self._frames: deque[Any] = deque()
        self._held = 0
        self._closed: Close | None = None
        self._writing: asyncio.Task[None] | None = None
        self._has_room = True

    @property
    def is_gone(self) -> bool:
        return self._wire.is_gone

    @property
    def is_too_much(self) -> bool:
        """Whether more frames wait than allowed."""
        return self._held > self.session.ahead_bytes > 0

    def accepted(self) -> None:
        self._wire.accepted()

    def ask(self) -> None:
        self._wire.ask()

    def write(self, frame: Any) -> bool:
        """Write a frame, or let it wait after the waiting ones; False only if the function has to wait."""
        if not self.session.ahead_bytes:
            return self._wire.write(frame)
        if self._writing is None and self._has_room:
            self._has_room = self._wire.write(frame)
            return True
        self._frames.append(frame)
        self._held += len(frame)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write(), name="write ahead")
            self._driver.watch(self._writing, "what is still to be sent")
        return True

    async def room(self) -> None:
        await self._wire.room()

    async def empty(self) -> None:
        """Wait until all frames that waited here are written."""
        if self._writing is not None:
            await asyncio.wait((self._writing,))

    def close(self, close: Close) -> None:
        """Close the real wire after the frames that wait."""
        if self._writing is None:
            self._on_close(close)
        else:
            self._closed = close

    async def _write(self) -> None:
        wire, frames = self._wire, self._frames
        while frames and not wire.is_gone:
            await wire.room()
            frame = frames.popleft()
            self._held -= len(frame)
            self._has_room = wire.write(frame)
        frames.clear()
        self._held, self._writing = 0, None
        if self._closed is not None:
            self._on_close(self._closed)
