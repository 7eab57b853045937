"""`Operations`: posts the operations of one call and handles their events; the base of `ThreadCall`.

Flags show the running operations, because a call allows one receive and one send at a time. Operations are posted with
the lock held, because the thread of the call is not the only one that posts. The thread that takes an event off the
queue gives it to `_handle`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import Any

from invoker.core.budget import STEP_BYTES, ProcessBudget, Unread
from invoker.core.steps import Trailers
from invoker.transports.grpc.cygrpc import NO_FLAGS, cygrpc
from invoker.transports.grpc.details import clip, oversize, status_of
from invoker.transports.grpc.settings import COPIES, UNCHECKED

log = logging.getLogger(__name__)

# Tags of events; compared by identity.
CLOSE, READ, SENT, _OTHER = object(), object(), object(), object()

_HEADERS = b"headers"  # the value of `held` while only the response headers wait

DONE = cygrpc.CompletionType.operation_complete if cygrpc is not None else None


class Operations:
    """The operations of one call.

    Args:
        call: The call as grpcio's private layer gives it.
        queue: The completion queue, which serves this call alone.

    Attributes:
        is_ended: Whether the peer has half-closed.
        is_gone: Whether the peer cancelled, its deadline passed, or the connection broke.
        headers: The headers of the response.
        settles: Whether the half-close has to settle, because the function acts on an end of its input.
        settle_s: How long the peer may take to turn a half-close into a cancel (R-109); 0 for a peer that never does.
        memory: Counts large frames that the peer has not taken; set before the first one.
        unread: Counts large frames that are being sent; None: there was no large frame.
    """

    __slots__ = (
        "_call", "_frames", "_headers_due", "_held", "_is_accepted", "_is_empty", "_is_finished", "_is_headed",
        "_large_bytes", "_most_bytes", "_pending", "_poll", "_polling", "_post", "_reading", "_receive", "_sending",
        "_until", "headers", "is_ended", "is_gone", "lock", "memory", "queue", "settle_s", "settles", "unread",
    )  # fmt: skip

    memory: ProcessBudget

    def __init__(self, call: Any, queue: Any) -> None:
        self.queue = queue
        self.lock = threading.Lock()
        self.is_ended = False
        self.is_gone = False
        self.headers: Trailers = ()
        self._most_bytes, self._large_bytes = UNCHECKED, STEP_BYTES
        self.settles = True
        self.settle_s = 0.0
        self.unread: Unread | None = None
        self._until: float | None = None  # when the half-close has settled, on the clock of time.monotonic
        self._call = call
        self._poll = queue.poll
        self._post = call.start_server_batch
        self._receive = cygrpc.ReceiveMessageOperation(NO_FLAGS)
        self._frames: deque[bytes] = deque()
        self._held: bytes | None = None
        self._polling = self._reading = self._sending = False
        self._headers_due = self._is_accepted = self._is_empty = self._is_finished = False
        self._is_headed = False  # whether the headers are sent
        self._pending = 0

    def allow(self, most_bytes: int) -> None:
        """Set the largest message; a larger one ends the call (R-121)."""
        self._most_bytes, self._large_bytes = most_bytes, min(most_bytes, STEP_BYTES)

    # With the lock held.

    def send_status(self, code: int, detail: str, trailers: Trailers = ()) -> None:
        """Post the status, after the held frames."""
        if self._is_finished:
            return
        self._is_finished = True
        status = cygrpc.SendStatusFromServerOperation(trailers, code, clip(detail) if detail else b"", NO_FLAGS)
        held, self._held = self._held, None
        operations: tuple[Any, ...] = (status,)
        if held is not None and not self.is_gone:
            operations = (cygrpc.SendMessageOperation(held, NO_FLAGS), status)
        if not self._is_headed:
            self._is_headed, self._headers_due = True, False
            operations = (cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS), *operations)
        self._pending += 1
        if self._post(operations, _OTHER):
            self._refused()

    def ask(self) -> None:
        """Ask for the next frame, unless a receive is running."""
        if not self._reading and not self.is_ended and not self.is_gone and not self._is_finished:
            self._reading = True
            self._pending += 1
            if self._post((self._receive,), READ):
                self._refused()

    def flush(self) -> None:
        """Send the held frames, and the headers."""
        if self._sending:
            self.glance()  # the previous operation may be done without being noticed
        if self._held is not None:
            if not self._sending and not self.is_gone:
                self._send(self._held, NO_FLAGS)
        elif self._headers_due:
            self._is_headed, self._headers_due = True, False
            self._pending += 1
            self._post((cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS),), _OTHER)

    def send_now(self, frame: bytes) -> bool:
        """Send one frame, unless it would have to wait; returns whether that was done."""
        self.glance()
        if self._sending or self.is_gone or self._is_finished:
            return False
        self._send(frame, NO_FLAGS)
        return True

    def send_headers(self) -> None:
        """Send the headers, unless they are sent."""
        if not self._is_headed:
            self._headers_due = True
            self.flush()

    def glance(self) -> None:
        """Take the events on the queue without waiting, unless another thread waits there already."""
        while not self._polling and self._pending:
            event = self._poll(0)
            if event.completion_type != DONE:
                return
            self._handle(event)

    # Other classes call these.

    @property
    def peer(self) -> str:
        """The peer's address, as gRPC writes it."""
        return str(self._call.peer().decode())

    @property
    def is_idle(self) -> bool:
        """Whether the thread of the call waits for the peer."""
        return self._polling

    @property
    def held(self) -> bytes | None:
        """The frame, or the headers, that wait for the next read or write."""
        return self._held or (_HEADERS if self._headers_due else None)

    @property
    def is_done(self) -> bool:
        """Whether every operation has ended, so that no event is to come."""
        return self._pending == 0

    def cut(self, code: int, detail: str) -> None:
        """End the call with a status, whatever its thread does."""
        self._call.cancel(code, clip(detail))

    # Private helpers.

    def _count(self, frame: bytes | None) -> None:
        """Count a large frame, which may end another call; must not be called with a lock held."""
        if self.unread is None:
            self.unread = Unread(self.memory)
        self.unread.add(len(frame or b""), lambda error: self.cut(int(error.status), str(error)), copies=COPIES)

    def _count_unlocked(self, frame: bytes) -> bool:
        """Do as `_count`, releasing the held lock meanwhile; returns whether the frame can still be sent."""
        self._sending = True  # so that no other thread sends
        self.lock.release()
        try:
            self._count(frame)
        finally:
            self.lock.acquire()
            self._sending = False
        return not (self.is_gone or self._is_finished)

    def _send(self, frame: bytes, flags: int) -> None:
        self._held = None
        self._sending = True
        self._pending += 1
        if not self._is_headed:
            self._is_headed, self._headers_due = True, False
            headers = cygrpc.SendInitialMetadataOperation(self.headers, NO_FLAGS)
            # No hint: headers beside a hinted message wait for the next one, and the batch is only done when they are
            # sent.
            code = self._post((headers, cygrpc.SendMessageOperation(frame, NO_FLAGS)), SENT)
        else:
            code = self._post((cygrpc.SendMessageOperation(frame, flags),), SENT)
        if code:
            self._refused()

    def _may_be_large(self, frame: bytes) -> bool:
        """Whether a frame has an allowed size; otherwise the call is ended."""
        self._receive = cygrpc.ReceiveMessageOperation(NO_FLAGS)  # the old operation keeps its frame
        if len(frame) <= self._most_bytes:
            return True
        self.cut(*status_of(oversize(len(frame), self._most_bytes)))
        return False

    def _believe(self) -> None:
        """The half-close has settled: it is an end unless the peer has cancelled by now.

        R-109: if grpcio has already noticed a cancel, its close event comes before the event of this operation.
        """
        self._until = None
        self._reading = False
        self.ask()

    def _refused(self) -> None:
        """Mark the call as broken: grpcio refused an operation, so no event will come for it."""
        log.error("grpcio refused an operation on a call")
        self._pending -= 1
        self._reading = self._sending = False
        self.is_gone = True

    def _handle(self, event: Any) -> None:
        tag = event.tag
        self._pending -= 1
        if tag is READ:
            self._reading = False
            frame = event.batch_operations[-1].message()
            if frame is not None:
                if len(frame) <= self._large_bytes or self._may_be_large(frame):
                    self._frames.append(frame)
                else:
                    self.is_gone = True
            elif not event.success:
                self.is_gone = True
            elif self._is_empty or not self.settles:
                self.is_ended = True
            else:
                self._is_empty = True
                if self.settle_s:
                    self._reading = True  # so that no other code asks for another frame meanwhile
                    self._until = time.monotonic() + self.settle_s
                else:
                    self._believe()
        elif tag is SENT:
            self._sending = False
            if self.unread is not None:
                self.unread.sent()
            if not event.success:
                self.is_gone = True
        elif tag is CLOSE and event.batch_operations[0].cancelled():
            self.is_gone = True
