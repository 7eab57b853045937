"""`LoopCall`: one gRPC call on the loop's completion queue. Only `room` waits.

A call allows one receive and one send at a time. Frames are received as long as the conversation wants them. A written
frame waits for the end of the loop's turn. If another frame follows in the same turn, the first one is sent with the
hint that more is coming, and the transport sends both at once. The last frame of a turn is sent without the hint, so
that none stays in the transport's buffer.

Send and receive are never posted as one batch: a batch is done only when both are, and a function that gives up waiting
for input (a time-out) must be able to write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from invoker.core.budget import Unread
from invoker.core.frames import SharedFrame
from invoker.core.steps import Close, Trailers
from invoker.errors import InvocationError
from invoker.transports.grpc.cygrpc import BUFFER_HINT, NO_FLAGS, cygrpc
from invoker.transports.grpc.details import clip, oversize, status_of
from invoker.transports.grpc.queue_poller import QueuePoller
from invoker.transports.grpc.settings import COPIES, UNCHECKED

_ROOM = 2
"""How many frames may wait: the one that is being sent, and the next one."""


LITTLE_BYTES = 64 * 1024
"""A last message of at most this many bytes is sent in one operation with the status, without waiting for the peer."""


class Listener(Protocol):
    """The conversation that a call belongs to: it gets the frames, room to write, and the end."""

    @property
    def settles(self) -> bool:
        """Whether an end of the input has to settle, because it must be told apart from a cancel (R-109)."""

    def arrived(self, frame: bytes | None) -> bool:
        """Take a frame, or the half-close (None); returns whether more frames are wanted now."""

    def gone(self) -> None:
        """Note that the peer cancelled, its deadline passed, or the connection broke."""


class _Left:
    """Replaces the listener of a call that is over, and drops frames that still come."""

    settles = False

    def arrived(self, frame: bytes | None) -> bool:  # noqa: ARG002 - the listener's interface
        return False

    def gone(self) -> None:
        pass


LEFT = _Left()


class LoopCall:
    """One gRPC call whose events the loop handles.

    Args:
        call: The call as grpcio's private layer gives it.
        queue_poller: Brings the call's events.
        settle_s: How long the peer may take to turn a half-close into a cancel (R-109); 0 for a peer that never does.
        most_bytes: A message with more bytes ends the call (R-121).
        takes_one: Whether the first frame is the last, so that the call does not wait for the half-close.

    Attributes:
        headers: The headers of the response.
        is_ended: Whether the peer has half-closed.
        is_gone: Whether the peer will get nothing any more.
    """

    __slots__ = (
        "_call",
        "_headers_due",
        "_is_due",
        "_is_empty",
        "_is_finished",
        "_is_headed",
        "_is_listed",
        "_large_bytes",
        "_listener",
        "_most_bytes",
        "_out",
        "_post",
        "_queue_poller",
        "_reading",
        "_receive",
        "_room",
        "_sending",
        "_settle_s",
        "_settling",
        "_shared",
        "_status",
        "_takes_one",
        "_unread",
        "headers",
        "is_ended",
        "is_gone",
    )  # fmt: skip

    def __init__(
        self,
        call: Any,
        queue_poller: QueuePoller,
        settle_s: float = 0.0,
        most_bytes: int = UNCHECKED,
        *,
        takes_one: bool = False,
    ) -> None:
        self.is_ended = False
        self.is_gone = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self._call = call
        self._queue_poller = queue_poller
        self._most_bytes, self._large_bytes = most_bytes, min(most_bytes, LITTLE_BYTES)
        self._settle_s = settle_s
        self._takes_one = takes_one
        self._settling: asyncio.TimerHandle | None = None
        self._post = call.start_server_batch
        self._receive = cygrpc.ReceiveMessageOperation(NO_FLAGS)
        self._listener: Listener | None = None
        self._out: list[bytes | SharedFrame] = []  # even an empty deque takes 760 bytes a call
        self._room: asyncio.Future[None] | None = None
        self._status: tuple[int, str, Trailers] | None = None
        self._unread: Unread | None = None
        self._shared: SharedFrame | None = None  # kept while it is sent, so that other calls find it
        self._reading = self._sending = self._headers_due = False
        self._is_due = self._is_empty = self._is_finished = self._is_headed = self._is_listed = False

    @property
    def peer(self) -> str:
        """The peer's address, as gRPC writes it."""
        return str(self._call.peer().decode())

    def open(self, listener: Listener) -> None:
        """Watch for the end of the call and ask for the first frame."""
        self._listener = listener
        self._reading = True
        self._queue_poller.opened()
        self._post((cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS),), self._on_close)
        self._post((self._receive,), self._on_read)

    def listen(self, listener: Listener) -> None:
        """Give what still comes to another listener."""
        if self._listener is not LEFT:  # otherwise the call is over
            self._listener = listener

    def accepted(self) -> None:
        """Send the response headers at the end of this turn, or with a frame before (R-133)."""
        if self._headers_due or self._is_headed or self.is_gone:
            return
        self._headers_due = True
        if not self._is_listed:
            self._is_listed = True
            self._queue_poller.later(self._flush)

    def ask(self) -> None:
        """Receive the next frame, unless a receive is running."""
        if self._reading or self.is_ended or self.is_gone or self._is_finished:
            return
        self._reading = True
        self._post((self._receive,), self._on_read)

    def write(self, frame: Any) -> bool:
        """Send one frame, bytes or a `SharedFrame`; False when the next one should wait for `room`."""
        if self.is_gone:
            return False
        out = self._out
        out.append(frame)
        if len(out) == 1:
            self._list()
            return True
        if self._sending:
            self._queue_poller.dispatch()
        if not self._sending and out and not self.is_gone:
            self._send(out.pop(0), BUFFER_HINT)
        return len(out) < _ROOM

    async def room(self) -> None:
        """Wait until a frame may be written; if the peer is gone, let the loop take the close event."""
        if self.is_gone:
            await asyncio.sleep(0)
        while not self._has_room() and not self.is_gone:
            if self._room is None or self._room.done():
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)  # several outputs may wait for room

    def finish(self, code: int, detail: str, trailers: Trailers = ()) -> None:
        """Send the written frames, then the status and its metadata; the first status counts."""
        if self._is_finished:
            return
        self._is_finished = True
        self._status = (code, detail, trailers)
        if self.is_gone:
            self._drop()  # at once, since a transport that stops flushes no more frames
        if self._sending or (self._out and len(self._out[0]) > LITTLE_BYTES):
            self._advance()
        else:
            self._queue_poller.later(self._advance)  # with the statuses of other calls of this turn (ADR 38)

    def reply(self, frames: list[Any], close: Close) -> None:
        """Send frames, then the status and its metadata."""
        if not self._is_finished:
            self._out += frames
            self.finish(*status_of(close.error), close.trailers)

    def reply_at_once(self, frames: list[Any], close: Close, done: Callable[[Any], None]) -> None:
        """Send at most one frame and the status in one batch; called from a thread.

        Nothing was sent before, and nothing else will be sent. The frame is not larger than `LITTLE_BYTES`.

        Args:
            frames: The frame, if there is one.
            close: The ending.
            done: Called on the loop when the batch has been sent.
        """
        self._is_finished = True
        self._status = (*status_of(close.error), close.trailers)
        self._end(frames[0] if frames else None, done)

    def cut(self, error: InvocationError) -> None:
        """End the call with a status; from any thread."""
        self._call.cancel(*status_of(error))

    # Private helpers.

    def _has_room(self) -> bool:
        return len(self._out) < _ROOM

    def _drop(self) -> None:
        self._out.clear()

    def _list(self) -> None:
        if not self._is_listed:
            self._is_listed = True
            self._queue_poller.later(self._flush)

    def _flush(self) -> None:
        self._is_listed = False
        if self._is_finished:
            return  # `finish` has sent all that can be sent, or sends it in this turn
        self._advance()
        if self._headers_due:
            self._is_headed, self._headers_due = True, False
            self._post((cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS),), self._on_other)

    def _advance(self) -> None:
        """Send the waiting frames, as far as possible now."""
        if self._sending:
            self._is_due = True
            return
        out = self._out
        if self.is_gone:
            out.clear()
        last = out.pop(0) if len(out) == 1 else None
        if out:
            self._is_due = True
            self._send(out.pop(0), BUFFER_HINT)
        elif self._status is not None:
            self._end(last)
        elif last is not None:
            self._is_due = False
            self._send(last, NO_FLAGS)

    def _end(self, last: bytes | SharedFrame | None, done: Callable[[Any], None] | None = None) -> None:
        assert self._status is not None
        if type(last) is SharedFrame:
            self._shared, last = last, last.data
        code, detail, trailers = self._status
        self._status = None
        operations: list[Any] = []
        if not self._is_headed:
            self._is_headed, self._headers_due = True, False
            operations.append(cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS))
        if last is not None:
            operations.append(cygrpc.SendMessageOperation(last, NO_FLAGS))
        detail_bytes = clip(detail) if detail else b""
        operations.append(cygrpc.SendStatusFromServerOperation(trailers, code, detail_bytes, NO_FLAGS))
        if last is not None and len(last) > LITTLE_BYTES:
            self._count(len(last))
        if self._unread is not None:
            self._unread.part()
            self._post(operations, self._on_taken)
        else:
            self._post(operations, done or self._on_other)

    def _count(self, size: int) -> None:
        if self._unread is None:
            self._unread = Unread(self._queue_poller.memory)
        self._unread.add(size, self.cut, copies=COPIES)

    def _on_taken(self, _: Any) -> None:
        self._shared = None
        if self._unread is not None:
            self._unread.take()

    def _send(self, frame: bytes | SharedFrame, flags: int) -> None:
        self._sending = True
        if type(frame) is SharedFrame:
            self._shared, frame = frame, frame.data
        if len(frame) > LITTLE_BYTES:
            self._count(len(frame))
        if not self._is_headed:
            self._is_headed, self._headers_due = True, False
            # Headers must not go with a hint; see `Operations`.
            headers = cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS)
            self._post((headers, cygrpc.SendMessageOperation(frame, NO_FLAGS)), self._on_sent)
        else:
            self._post((cygrpc.SendMessageOperation(frame, flags),), self._on_sent)

    def _on_sent(self, event: Any) -> None:
        self._sending = False
        self._shared = None
        if self._unread is not None:
            self._unread.sent()
        if not event.success:
            self.is_gone = True
        if self._is_due or self.is_gone:
            self._advance()
        if self._room is not None and self._has_room() and not self._room.done():
            self._room.set_result(None)

    def _on_read(self, event: Any) -> None:
        self._reading = False
        listener = self._listener
        assert listener is not None
        frame = event.batch_operations[0].message()
        if frame is None:
            if not event.success:
                self.is_ended = True  # this is a cancel; its close event follows
            elif not self._is_empty and listener.settles:
                self._is_empty = True
                if self._settle_s:
                    self._reading = True  # so that no other code asks for another frame meanwhile
                    self._settling = asyncio.get_running_loop().call_later(self._settle_s, self._believe)
                else:
                    self._believe()
            else:
                self.is_ended = True
                if not self.is_gone:
                    listener.arrived(None)
        elif len(frame) > self._large_bytes and not self._may_be_large(frame):
            self.is_ended = True  # the call's close event follows, as for a message that is too large for grpcio
        elif self._is_finished:
            return
        elif self._takes_one:
            self.is_ended = True
            listener.arrived(frame)
            if not self._is_finished:
                listener.arrived(None)
        elif listener.arrived(frame) and not (self._reading or self.is_ended or self.is_gone or self._is_finished):
            self._reading = True  # as `ask` does
            self._post((self._receive,), self._on_read)

    def _may_be_large(self, frame: bytes) -> bool:
        """Whether the size of a large frame is allowed; otherwise the call is ended."""
        self._receive = cygrpc.ReceiveMessageOperation(NO_FLAGS)  # the old operation keeps its frame
        if len(frame) <= self._most_bytes:
            return True
        self._call.cancel(*status_of(oversize(len(frame), self._most_bytes)))
        return False

    def _believe(self) -> None:
        """The half-close has settled: it is an end unless the peer has cancelled by now.

        R-109: if grpcio has already noticed a cancel, its close event comes before the event of this operation.
        """
        self._settling = None
        self._reading = False
        if not self._is_finished and not self.is_gone:
            self._queue_poller.recall()
            self.ask()

    def _on_close(self, event: Any) -> None:
        self._queue_poller.closed()
        if self._settling is not None:
            self._settling.cancel()
        if event.batch_operations[0].cancelled():
            self.is_gone = True
            self._drop()
            if self._room is not None and not self._room.done():
                self._room.set_result(None)
            assert self._listener is not None
            self._listener.gone()
        self._listener = LEFT  # the listener refers to this call, and would have to wait for the garbage collector

    def _on_other(self, _: Any) -> None:
        """Ignore the event, since no code waits for it."""
