"""`AioCall`: one grpc.aio call as the wire of a conversation; a task reads, and writing needs no task.

As in `transports.grpc.loopcall`, code that writes more than the peer takes waits for room; if frames may be joined, the
frames of one turn of the loop are sent in one message. Otherwise `write` begins to send a frame at once if it can:
waking a task to send it would cost as much as sending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import grpc.aio

from invoker.core.budget import STEP_BYTES, ProcessBudget, Unread
from invoker.core.frames import SharedFrame
from invoker.core.steps import Close
from invoker.errors import InvocationError
from invoker.transports.grpc.details import oversize
from invoker.transports.grpc.joiningcall import nothing
from invoker.transports.grpc.loopcall import Listener
from invoker.transports.grpc.outbox import Outbox, Singles
from invoker.transports.grpc.settings import COPIES, UNCHECKED
from invoker.transports.grpc.settling import settle


class AioCall:
    """One grpc.aio call.

    Args:
        context: The context that grpc.aio passes to the handler.
        settle_s: Seconds between the end of the request stream and the half-close, for a listener that `settles`: a
            cancel, a lost connection, a passed deadline and an oversize frame look like an end at first (R-109, E-010).
        joins: Whether several frames may be joined into one message.
        most_bytes: A message with more bytes ends the call (R-121).
        memory: Counts large frames that the peer has not taken.
        headers: Headers that every response has.

    Attributes:
        headers: The headers of the response.
        is_gone: Whether the peer will get nothing any more.
        over: Called when only the status remains to be sent.
    """

    # A write needs no task: each of its steps is a callback of the future that the previous step awaits.

    def __init__(
        self,
        context: Any,
        settle_s: float,
        *,
        joins: bool,
        most_bytes: int = UNCHECKED,
        memory: ProcessBudget | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._memory = memory or ProcessBudget()
        self._unread: Unread | None = None
        self._shared: SharedFrame | None = None  # kept while it is sent, so that other calls find it
        self._refusal: InvocationError | None = None
        self._listener: Listener | None = None
        self.headers = headers
        self.is_gone = False
        self.over: Callable[[], None] = nothing
        self._context = context
        self._settle_s = settle_s
        self._joins = joins
        self._most_bytes = most_bytes
        self._outbox = Outbox() if joins else Singles()
        self._is_accepted = self._is_due = False
        self._headers_due = bool(headers)
        self._writing: Coroutine[Any, Any, None] | None = None
        self._loop = asyncio.get_running_loop()
        self._idle: asyncio.Future[None] | None = None  # set while `run` waits until nothing is written any more
        self._room: asyncio.Future[None] | None = None
        self._wanted: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[InvocationError | None] = self._loop.create_future()

    # The reactor's side.

    def accepted(self) -> None:
        """Send the response headers at the end of this turn, unless they are sent before a frame (R-133)."""
        if not self._is_accepted:
            self._is_accepted = self._headers_due = True
            self._advance_later()

    def ask(self) -> None:
        """Continue to read: the conversation wants more frames."""
        _resolve(self._wanted)

    def write(self, frame: Any) -> bool:
        """Send one frame; False when the next one should wait for `room`.

        It is bytes, or a `SharedFrame` unless frames are joined.
        """
        if self.is_gone or self._closed.done():
            return False
        self._outbox.put(frame)
        if self._joins:
            self._headers_due = self._headers_due or not self._is_accepted
            self._is_accepted = True
            self._advance_later()
        else:
            self._advance()
        return self._outbox.has_room

    @property
    def peer(self) -> str:
        """The peer's address, as gRPC writes it."""
        return str(self._context.peer())

    async def room(self) -> None:
        """Wait until a frame may be written.

        Once the peer is gone, let the loop run so that the conversation is notified.
        """
        if self.is_gone:
            await asyncio.sleep(0)
        while not self._outbox.has_room and not self.is_gone:
            if self._room is None or self._room.done():
                self._room = self._loop.create_future()
            await asyncio.shield(self._room)  # several outputs may wait for room

    def close(self, close: Close) -> None:
        """Close the call after all written frames, since the conversation is over."""
        if not self._closed.done():
            if self._unread is not None:
                self._unread.part()
            if close.trailers:
                self._context.set_trailing_metadata(close.trailers)
            self._closed.set_result(close.error)

    # The call's side.

    async def run(self, listener: Listener) -> InvocationError | None:
        """Carry frames until the session is closed.

        Returns:
            The error to send to the peer as the call's status; None for OK.

        Raises:
            asyncio.CancelledError: The call was cancelled; the session has been notified.
        """
        self._listener = listener
        if self._refusal is not None:
            listener.gone()
        reader = self._loop.create_task(self._read(listener, asyncio.current_task()), name="read")
        try:
            error = await self._closed
            if self.headers and self._headers_due:
                self._advance()
            while self._is_busy():
                self._idle = self._loop.create_future()
                await self._idle
            return self._refusal or error
        except asyncio.CancelledError:
            self._leave()
            listener.gone()
            raise
        finally:
            reader.cancel()
            self._listener = None
            self.over()

    async def _read(self, listener: Listener, call: asyncio.Task[Any] | None) -> None:
        read = self._context.read
        try:
            while (frame := await read()) is not grpc.aio.EOF:
                if len(frame) > self._most_bytes:
                    self._refuse(listener, oversize(len(frame), self._most_bytes))
                    return
                if not listener.arrived(frame):
                    self._wanted = self._loop.create_future()
                    await self._wanted
        except grpc.aio.InternalError:
            return  # the call was cancelled, of which `run` is notified in a moment
        if listener.settles:
            await settle(self._context, call, self._settle_s)
        listener.arrived(None)

    def _refuse(self, listener: Listener, error: InvocationError) -> None:
        """End the call with an error, whatever its invocation does; for the listener the peer is gone."""
        if not self._closed.done():
            self._closed.set_result(error)
        self._leave()
        listener.gone()

    # Writing.

    def _is_busy(self) -> bool:
        """Whether a write is under way or due.

        Even if no other frame will be sent, the call must not end before a running write: until that write has
        succeeded, grpc.aio treats the headers as unsent, sends them again with the status, fails, and sends no status.
        """
        return self._writing is not None or (not self.is_gone and (bool(self._outbox) or self._headers_due))

    def _advance_later(self) -> None:
        """Write at the end of this turn, unless a write happens before."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._advance)

    def _advance(self) -> None:
        """Begin the next write, unless one is under way or nothing waits."""
        self._is_due = False
        while self._writing is None and self._is_busy():
            if self._headers_due and (self.headers or not self._outbox):  # otherwise the write sends the empty headers
                self._is_accepted, self._headers_due = True, False
                self._writing = self._context.send_initial_metadata(self.headers)
            else:
                self._is_accepted, self._headers_due = True, False
                frame: Any = self._outbox.take()
                if type(frame) is SharedFrame:
                    self._shared, frame = frame, frame.data
                if len(frame) > STEP_BYTES and not self._count(len(frame)):
                    break
                self._writing = self._context.write(frame)
                _resolve(self._room)
            self._step()
        if not self._is_busy():
            _resolve(self._idle)

    def _step(self) -> None:
        """Run the write until it waits or ends."""
        assert self._writing is not None
        try:
            future = self._writing.send(None)
        except StopIteration:
            self._writing = self._shared = None
            if self._unread is not None:
                self._unread.sent()
        except (grpc.aio.InternalError, asyncio.CancelledError):
            self._writing = None
            self._leave()  # the call was cancelled meanwhile, of which the handler is notified only later
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._writing = None
            self._leave()
            if not self._closed.done():
                self._closed.set_exception(error)
        else:
            future._asyncio_future_blocking = False  # noqa: SLF001 - as asyncio's own task does when it awaits a future
            future.add_done_callback(self._go_on)

    def _go_on(self, _: object) -> None:
        if self._writing is not None:
            self._step()
            self._advance()

    def _count(self, size: int) -> bool:
        """Count a large frame until the call is done, since grpc.aio does not report when the peer has taken it.

        Returns whether it may be sent.

        A call cannot be ended while grpc.aio sends its message, so a frame that exceeds the memory ends its own call
        before it is sent.
        """
        if (unread := self._unread) is None:
            unread = self._unread = Unread(self._memory)
            self._context.add_done_callback(lambda _: unread.take())
        self._refusal = unread.add(size, None, copies=COPIES)
        if self._refusal is None:
            return True
        if not self._closed.done():
            unread.part()
            self._closed.set_result(self._refusal)
            if self._listener is not None:
                self._loop.call_soon(self._listener.gone)  # the call may be about to learn that its frame was written
        self._leave()
        return False

    def _leave(self) -> None:
        self.is_gone = True
        self._shared = None
        self._outbox.clear()
        _resolve(self._room)
        _resolve(self._idle)


def _resolve(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
