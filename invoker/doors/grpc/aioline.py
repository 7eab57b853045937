"""`AioLine`: one grpc.aio call as the wire of a session; a task reads, and another one writes what waits.

As in `invoker.doors.grpc.loopline`, what a turn of the loop wrote leaves in one message, and whoever writes more than
the peer takes waits for room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc.aio

from invoker.core.steps import Close
from invoker.doors.grpc.loopline import Listener, nothing
from invoker.doors.grpc.outbox import Outbox
from invoker.doors.grpc.settling import settle
from invoker.errors import InvocationError

__all__ = ["AioLine"]


class AioLine:
    """One call.

    Args:
        context: As grpc.aio gives it.
        settle_s: Wait between the end of the request stream and the half-close: a cancel, a lost connection, a passed
            deadline and an oversize frame look like an end at first (E-010).

    Attributes:
        headers: Of the response.
        is_gone: The peer will get nothing any more.
        over: Called once nothing but the status is left to be sent.
    """

    def __init__(self, context: Any, settle_s: float) -> None:
        self.headers: tuple[tuple[str, str], ...] = ()
        self.is_gone = False
        self.over: Callable[[], None] = nothing
        self._context = context
        self._settle_s = settle_s
        self._outbox = Outbox()
        self._is_accepted = self._headers_due = False
        self._changed = asyncio.Event()  # there is something to write, or the session is closed
        self._room = asyncio.Event()
        self._closed: asyncio.Future[InvocationError | None] = asyncio.get_running_loop().create_future()

    # The reactor's side.

    def accepted(self) -> None:
        """Send the response headers now, unless they were sent before a frame."""
        if not self._is_accepted:
            self._is_accepted = self._headers_due = True
            self._changed.set()

    def ask(self) -> None:
        """More is read in any case: a session never pauses."""

    def write(self, frame: bytes) -> bool:
        """Send one frame; False when the next one should wait for `room`."""
        if self.is_gone or self._closed.done():
            return False
        self.accepted()
        self._outbox.put(frame)
        self._changed.set()
        return self._outbox.has_room

    async def room(self) -> None:
        """Wait until a frame may be written; of a peer that is gone, let the loop take the news."""
        if self.is_gone:
            await asyncio.sleep(0)
        while not self._outbox.has_room and not self.is_gone:
            self._room.clear()
            await self._room.wait()

    def close(self, close: Close) -> None:
        """The session is over; what was written leaves first."""
        if not self._closed.done():
            if close.trailers:
                self._context.set_trailing_metadata(close.trailers)
            self._closed.set_result(close.error)
            self._changed.set()

    # The call's side.

    async def run(self, listener: Listener) -> InvocationError | None:
        """Carry frames until the session is closed.

        Returns:
            The error to tell the peer as the call's status; None for OK.

        Raises:
            asyncio.CancelledError: The call was cancelled; the session has heard of it.
        """
        reader = asyncio.get_running_loop().create_task(self._read(listener, asyncio.current_task()), name="read")
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
                listener.arrived(frame)
        except grpc.aio.InternalError:
            return  # the call was cancelled, of which `run` hears in a moment
        await settle(self._context, call, self._settle_s)
        listener.arrived(None)

    async def _write(self) -> None:
        """Write what waits until the session is closed and nothing does."""
        context, changed, outbox = self._context, self._changed, self._outbox
        try:
            while outbox or not self._closed.done():
                await changed.wait()
                changed.clear()
                if self._headers_due:
                    self._headers_due = False
                    await context.send_initial_metadata(self.headers)
                while outbox:
                    message = outbox.take()
                    self._room.set()
                    await context.write(message)
        except grpc.aio.InternalError:  # the call was cancelled meanwhile, which the handler hears of only later
            self._leave()

    def _leave(self) -> None:
        self.is_gone = True
        self._outbox.clear()
        self._room.set()
