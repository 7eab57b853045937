"""`AioLine`: one grpc.aio call as the wire of a conversation; a task reads, and another one writes what waits.

As in `invoker.doors.grpc.loopline`, whoever writes more than the peer takes waits for room; where frames may be joined,
what a turn of the loop wrote leaves in one message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc.aio

from invoker.core.steps import Close
from invoker.doors.grpc.loopline import Listener, nothing
from invoker.doors.grpc.outbox import Outbox, Singles
from invoker.doors.grpc.settling import settle
from invoker.errors import InvocationError

__all__ = ["AioLine"]


class AioLine:
    """One call.

    Args:
        context: As grpc.aio gives it.
        settle_s: Wait between the end of the request stream and the half-close, of a listener that settles: a cancel, a
            lost connection, a passed deadline and an oversize frame look like an end at first (R-109, E-010).
        joins: Whether frames may be joined to one message.

    Attributes:
        headers: Of the response.
        is_gone: The peer will get nothing any more.
        over: Called once nothing but the status is left to be sent.
    """

    def __init__(self, context: Any, settle_s: float, *, joins: bool) -> None:
        self.headers: tuple[tuple[str, str], ...] = ()
        self.is_gone = False
        self.over: Callable[[], None] = nothing
        self._context = context
        self._settle_s = settle_s
        self._outbox = Outbox() if joins else Singles()
        self._is_accepted = self._headers_due = False
        self._loop = asyncio.get_running_loop()
        self._idle: asyncio.Future[None] | None = None  # set while the writing task has nothing to do
        self._room: asyncio.Future[None] | None = None
        self._wanted: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[InvocationError | None] = self._loop.create_future()

    # The reactor's side.

    def accepted(self) -> None:
        """Send the response headers now, unless they were sent before a frame."""
        if not self._is_accepted:
            self._is_accepted = self._headers_due = True
            _resolve(self._idle)

    def ask(self) -> None:
        """More frames are wanted."""
        _resolve(self._wanted)

    def write(self, frame: bytes) -> bool:
        """Send one frame; False when the next one should wait for `room`."""
        if self.is_gone or self._closed.done():
            return False
        if not self._is_accepted:
            self.accepted()
        self._outbox.put(frame)
        _resolve(self._idle)
        return self._outbox.has_room

    async def room(self) -> None:
        """Wait until a frame may be written; once the peer is gone, let the loop run so that the conversation hears."""
        if self.is_gone:
            await asyncio.sleep(0)
        while not self._outbox.has_room and not self.is_gone:
            if self._room is None or self._room.done():
                self._room = self._loop.create_future()
            await asyncio.shield(self._room)  # several outputs may wait for it

    def close(self, close: Close) -> None:
        """The conversation is over; what was written leaves first."""
        if not self._closed.done():
            if close.trailers:
                self._context.set_trailing_metadata(close.trailers)
            self._closed.set_result(close.error)
            _resolve(self._idle)

    # The call's side.

    async def run(self, listener: Listener) -> InvocationError | None:
        """Carry frames until the session is closed.

        Returns:
            The error to tell the peer as the call's status; None for OK.

        Raises:
            asyncio.CancelledError: The call was cancelled; the session has heard of it.
        """
        reader = self._loop.create_task(self._read(listener, asyncio.current_task()), name="read")
        try:
            await self._write()
            return await self._closed
        except asyncio.CancelledError:
            self._leave()
            listener.gone()
            raise
        finally:
            reader.cancel()
            self.over()

    async def _read(self, listener: Listener, call: asyncio.Task[Any] | None) -> None:
        read = self._context.read
        try:
            while (frame := await read()) is not grpc.aio.EOF:
                if not listener.arrived(frame):
                    self._wanted = self._loop.create_future()
                    await self._wanted
        except grpc.aio.InternalError:
            return  # the call was cancelled, of which `run` hears in a moment
        if listener.settles:
            await settle(self._context, call, self._settle_s)
        listener.arrived(None)

    async def _write(self) -> None:
        """Write what waits until the conversation is over and nothing does."""
        context, outbox = self._context, self._outbox
        try:
            while True:
                if self._headers_due:
                    self._headers_due = False
                    await context.send_initial_metadata(self.headers)
                while outbox:
                    message = outbox.take()
                    _resolve(self._room)
                    await context.write(message)
                if self._closed.done():
                    return
                self._idle = self._loop.create_future()
                await self._idle
        except grpc.aio.InternalError:  # the call was cancelled meanwhile, which the handler hears of only later
            self._leave()

    def _leave(self) -> None:
        self.is_gone = True
        self._outbox.clear()
        _resolve(self._room)


def _resolve(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
