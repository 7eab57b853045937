"""`Inside`: the wire of a conversation inside the process, on the loop: commands go in, events come out.

It gives a `Reactor` the steps of one invocation, and is an async iterator of its messages. While nothing is read from
it, the function waits, as for a slow peer. Iterators among the arguments are read by a task each, as long as the
reactor wants more.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

from invoker.core.session import CallSession
from invoker.core.steps import CallStep, Close, Emitted, EndInput, Feed
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError
from invoker.execution.bodies.runner import later
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.message import Message

_HIGH_BYTES = 256 * 1024
_HIGH_FRAMES = 16
"""Frames and bytes that may wait for the reader; once one of these limits is reached, the function waits."""


class Inside:
    """The wire of one conversation inside the process.

    Args:
        session: Translates between the reactor and the reader, who gets what the session sends.
        driver: Runs the body.
        deadline: The deadline on the clock of ``time.monotonic``, or None.
    """

    is_gone = False

    def __init__(self, session: CallSession, driver: Driver, *, deadline: float | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames: deque[Any] = deque()
        self._bytes = 0
        self._closed: Close | None = None
        self._raised: BaseException | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._feeding: list[asyncio.Task[None]] = []
        self._asking: list[asyncio.Future[None]] = []
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._reactor: Reactor | None = Reactor(session, self, driver, self._close, deadline=deadline, is_early=True)
        if deadline is not None:
            self._timer = self._loop.call_later(max(0.0, deadline - time.monotonic()), self._late)

    def give(self, steps: Sequence[CallStep]) -> None:
        """Give the session steps, as one frame."""
        if self._reactor is not None and not self._reactor.arrived(steps):
            self._is_paused = True

    def read(self, key: str, index: int, values: AsyncIterator[Message[bytes]]) -> None:
        """Feed an input from an iterator, in a task of its own."""
        self._feeding.append(self._loop.create_task(self._read(key, index, values), name="feed a nested call"))

    def leave(self, error: InvocationError | None = None) -> None:
        """End the conversation if it still runs, since its reader has gone."""
        if self._reactor is not None:
            self._reactor.fail(error or Cancelled("the caller reads no more values, or its invocation is over"))

    def abandon(self) -> None:
        """End the conversation from any thread, because its caller is over."""
        later(self._loop, self.leave)

    def __aiter__(self) -> Inside:
        return self

    async def __anext__(self) -> Any:
        while not self._frames:
            if self._raised is not None:
                raise self._raised
            if self._closed is not None:
                if self._closed.error is not None:
                    raise self._closed.error
                raise StopAsyncIteration
            self._reader = self._loop.create_future()
            try:
                await self._reader
            except asyncio.CancelledError:
                self.leave()
                raise
        frame = self._frames.popleft()
        self._bytes -= _size(frame)
        if self._writers and self._has_room:
            self._wake(self._writers)
        return frame

    # The methods of `Wire`, which the reactor and the bodies call.

    def accepted(self) -> None:
        """Do nothing: the reader gets nothing before the first value."""

    def ask(self) -> None:
        """Let the tasks continue that feed the inputs."""
        self._is_paused = False
        self._wake(self._asking)

    def write(self, frame: Any) -> bool:
        """Keep one frame for the reader; False when enough frames are kept."""
        self._frames.append(frame)
        self._bytes += _size(frame)
        self._wake_reader()
        return self._has_room

    async def room(self) -> None:
        """Wait until the reader has taken some frames."""
        while not self._has_room and self._closed is None:
            writer = self._loop.create_future()
            self._writers.append(writer)
            await writer

    # Private helpers.

    @property
    def _has_room(self) -> bool:
        return len(self._frames) < _HIGH_FRAMES and self._bytes < _HIGH_BYTES

    def _late(self) -> None:
        self.leave(DeadlineExceeded())

    def _close(self, close: Close) -> None:
        self._closed = close
        self._reactor = None  # it refers to this object, which would have to wait for the garbage collector
        if self._timer is not None:
            self._timer.cancel()
        for one in self._feeding:
            one.cancel()
        self._wake(self._writers)
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _wake(self, waiting: list[asyncio.Future[None]]) -> None:
        for one in waiting:
            if not one.done():
                one.set_result(None)
        waiting.clear()

    async def _read(self, key: str, index: int, values: AsyncIterator[Message[bytes]]) -> None:
        try:
            async for message in values:
                self.give((Feed(key, index, message),))
                while self._is_paused:
                    waiter = self._loop.create_future()
                    self._asking.append(waiter)
                    await waiter
            self.give((EndInput(key, index),))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - it is the caller's iterator, so the caller gets its exception
            self._raised = self._raised or error
            self.leave(Cancelled(f"the caller's iterator for input {index} raised"))
        finally:
            close = getattr(values, "aclose", None)
            if close is not None:
                await close()


def _size(frame: Any) -> int:
    return len(frame.message.payload) if isinstance(frame, Emitted) else 0
