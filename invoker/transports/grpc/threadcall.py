"""`ThreadCall`: one gRPC call with a completion queue of its own, driven by the thread that runs its function.

Theory. A call allows one receive and one send at a time; each is posted, and is done when its event comes off the
queue. The thread looks at the queue (a microsecond) and sleeps there only when nothing is left to do, so it receives
all frames that have arrived meanwhile at once, a few frames *ahead* of the function. A written frame may be *held*. If
another frame follows, the held one is sent with the hint that more is coming, and the transport sends both at once. If
the thread is about to sleep, the held one is sent without the hint. A function whose frame is held is expected to come
back at once; if it does not, the `Sweeper` sends the frame after one of its beats.

=========== ============================ =======================================================
state       means                        left by
=========== ============================ =======================================================
open        frames may come and go       an empty receive, ``finish()``, the event of a cancel
settling    an end, or a cancel          the settle time and one more receive, ``finish()``, as above
half-closed no frame will come           ``finish()``, the event of a cancel
gone        the peer will get nothing    nothing
finished    the status is under way      nothing
=========== ============================ =======================================================

One lock guards posting, because the sweeper and the drain post too; no thread waits for the queue while holding it.
Only one thread polls at a time (``_polling``), because an event that another thread took would never come back. An
empty receive is an end or a cancel (R-109). So the thread waits for the close event until the peer's settle time, if it
has one, is over. Then it posts one more receive: if a cancel has arrived, its close event is on the queue before that
one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from invoker.core.budget import STEP_BYTES
from invoker.core.steps import Trailers
from invoker.errors import Cancelled
from invoker.execution.pace.gate import UNGATED, Pace, Ticket
from invoker.transports.grpc.cygrpc import BUFFER_HINT, NO_FLAGS, cygrpc
from invoker.transports.grpc.operations import CLOSE, DONE, READ, Operations

AHEAD = 32
"""How many frames are received ahead of the function, if they have come already."""

_LARGE = 16 * 1024
"""After a frame with more bytes than this, no further frame is received ahead of the function."""


class ThreadCall(Operations):
    """One gRPC call, which is read and written by the thread that runs its function.

    Args:
        call: The call as grpcio's private layer gives it.
        queue: The completion queue, which serves this call alone.
        sweeper: The sweeper, which sends frames that are held for too long, and whose gate gives the thread its turns.
        high_frames: With more unread frames than this, the call receives nothing while it waits for a send.
        high_bytes: With more unread bytes than this, the call receives nothing while it waits for a send.

    Attributes:
        before_wait: Called whenever the call's thread is about to wait.
        changed: Notified of every event, when several threads share the call; on the call's lock.
        is_swept: Whether the sweeper watches the held frames.
        seen: The held frames that the sweeper saw at its last beat.
    """

    __slots__ = (
        "_gate", "_high_bytes", "_high_frames", "_is_joined", "_slept", "_sweeper", "_ticket", "before_wait", "changed",
        "is_swept", "seen",
    )  # fmt: skip

    def __init__(
        self, call: Any, queue: Any, sweeper: Any, *, high_frames: int = 256, high_bytes: int = 4 << 20
    ) -> None:
        super().__init__(call, queue)
        self.changed: threading.Condition | None = None
        self.before_wait: Callable[[], None] | None = None
        self.is_swept = False
        self.seen: bytes | None = None
        self._slept = self._is_joined = False
        self._sweeper = sweeper
        self._gate = sweeper.gate
        self._ticket = Ticket(work=self._frames)
        self._high_frames = high_frames
        self._high_bytes = high_bytes

    # These methods are for the thread that runs the function.

    @property
    def pace(self) -> Pace:
        """The pace of the function, which decides whether it takes turns with others."""
        return self._ticket.pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self._ticket.pace = pace

    def open(self, frames: Sequence[bytes] = (), *, is_reading: bool = False) -> None:
        """Watch for the end of the call and ask for the next frame.

        Args:
            frames: The frames that were already received.
            is_reading: Whether the next frame was already requested.
        """
        self._gate.join()
        if self._gate.is_crowded:
            self._gate.enter(self._ticket)
        self._is_joined = True
        self._frames.extend(frames)
        self._pending = 2
        self._reading = True
        self._post((cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS),), CLOSE)
        if not is_reading:
            self._post((self._receive,), READ)

    def go_on(self, pending: int, *, is_headed: bool, is_sending: bool, is_gone: bool) -> None:
        """Take over a call that is already watched, and whose half-close has been received but has not settled.

        Args:
            pending: Number of running operations.
            is_headed: Whether the headers are sent, or being sent.
            is_sending: Whether a frame is being sent.
            is_gone: Whether the peer has left.
        """
        self._pending, self._is_headed, self._sending, self.is_gone = pending, is_headed, is_sending, is_gone
        self._is_empty = True
        if self.settle_s:
            self._reading = True  # so that no other code asks for another frame meanwhile
            self._until = time.monotonic() + self.settle_s

    def accepted(self) -> None:
        """Send the response headers now, or with a frame that follows at once (R-133)."""
        with self.lock:
            self._is_accepted = True
            self._headers_due = not self._is_headed
            if self.before_wait is None:
                self.flush()
        if self._headers_due and not self.is_swept:
            self._sweeper.watch(self)

    def read(self) -> bytes | None:
        """Wait for the next frame; None when the peer has half-closed.

        Raises:
            Cancelled: The peer cancelled, its deadline passed, or it is gone.
        """
        frames, slept = self._frames, False
        if not frames:
            with self.lock:
                self._polling = True
                if self._slept:  # the peer seems to wait for each reply, so send it before polling the queue
                    self.flush()
            self._receive_ahead()
            if frames:  # there is a batch to do, which is worth a turn
                if self._gate.is_waited_for:
                    self._gate.leave(self._ticket)
                self._gate.enter(self._ticket)
            while not frames and not self.is_ended and not self.is_gone:
                if self._held is not None or self._headers_due:
                    with self.lock:
                        self.flush()
                event = self._wait(None if self._until is None else self._settled_at)
                if event.completion_type == DONE:
                    self._handle(event)
                else:
                    self._believe()
                slept = True
            self._slept = slept
            self._polling = False
        if self.is_gone:
            raise _gone()
        if frames:
            return frames.popleft()
        return None

    def await_frame(self, delay_s: float) -> bool:
        """Wait at most this long for the next frame; returns whether it is here, which is False after a half-close."""
        frames, until = self._frames, time.time() + delay_s  # the clock of completion queues
        with self.lock:
            self._polling = True
            self.flush()
        while not frames and not self._is_empty and not self.is_ended and not self.is_gone:
            with self.lock:
                self.ask()
            event = self._wait(until)
            if event.completion_type != DONE:
                break
            self._handle(event)
        self._polling = False
        return bool(frames) or self.is_gone

    def write(self, frame: bytes, *, hold: bool) -> None:
        """Send one frame; waits while the previous frame is being sent, so a slow peer suspends the function (R-127).

        Args:
            frame: The serialised frame.
            hold: Whether the next read or write follows at once, so that the frame may wait for it.

        Raises:
            Cancelled: As `read`.
        """
        held = self._held
        if held is not None:
            if self._sending:
                self._await_sent()
            if len(held) > STEP_BYTES and self._held is not None:
                self._count(held)
            with self.lock:
                held = self._held  # the sweeper may have sent the held frame meanwhile
                if held and not self.is_gone:
                    self._send(held, BUFFER_HINT if hold else NO_FLAGS)
        if hold:
            self._held = frame
            if not self.is_swept:
                self._sweeper.watch(self)
        else:
            if self._sending:
                self._await_sent()
            if len(frame) > STEP_BYTES:
                self._count(frame)
            with self.lock:
                if not self.is_gone:
                    self._send(frame, NO_FLAGS)
        if self.is_gone:
            raise _gone()

    def look(self) -> bool:
        """Whether the peer is known to be gone; does not wait."""
        with self.lock:
            self.glance()
        return self.is_gone

    def look_ahead(self) -> Sequence[bytes]:
        """The frames that wait for a function which does not pull; some arrived frames are received for this."""
        frames = self._frames
        with self.lock:
            while not self._polling and len(frames) < AHEAD and not (frames and len(frames[-1]) > _LARGE):
                count = len(frames)
                self.ask()
                self.glance()
                if len(frames) == count:
                    break
        return tuple(frames)

    @property
    def waiting(self) -> Sequence[bytes]:
        """The frames that have come and that the function has not taken.

        Some of those that come while the function is busy are received for this.
        """
        return tuple(self._frames)

    @property
    def is_blocked(self) -> bool:
        """Whether the thread waits because the peer takes none of the sent frames."""
        return self._polling and self._sending

    def refuse(self, code: int, detail: str) -> bool:
        """Send the status while the call's thread is busy; the thread then sees that the peer is gone.

        Returns:
            False if that is impossible now: the thread waits for the peer, or a held frame cannot be sent yet.
        """
        with self.lock:
            if self._polling or self.is_gone or (self._held is not None and self._sending):
                return False
            self.send_status(code, detail)
            self.is_gone = True
        return True

    def finish(self, code: int, detail: str, trailers: Trailers = ()) -> bool:
        """Send the held frames, then the status and its metadata; the first status counts.

        Returns:
            Whether every operation is done, so that the queue can serve another call.
        """
        held = self._held
        if held is not None and self._sending:
            self._await_sent()
        if held is not None and len(held) > STEP_BYTES and self._held is not None:
            self._count(held)
        with self.lock:
            self.send_status(code, detail, trailers)
            self.glance()
        self._gate.leave(self._ticket)
        if self._is_joined:
            self._gate.part()
            self._is_joined = False
        return self._pending == 0

    # These methods are for several threads, each with the lock held.

    def share(self) -> threading.Condition:
        """From now on several threads use this call; the condition is notified of every event."""
        if self.before_wait is not None:
            self.before_wait()
        self._gate.leave(self._ticket)
        self._ticket.pace = UNGATED
        with self.lock:
            self.flush()
        self.changed = threading.Condition(self.lock)
        return self.changed

    def turn(self) -> None:
        """Wait for one event, or for the thread that already waits; the lock is released meanwhile."""
        assert self.changed is not None
        if self._polling:
            self.changed.wait()
            return
        self._polling = True
        self.lock.release()
        try:
            event = self._wait(None if self._until is None else self._settled_at)
        finally:
            self.lock.acquire()
            self._polling = False
        self._act(event)
        self.changed.notify_all()

    def next_frame(self) -> bytes | None:
        """A frame that has already come."""
        return self._frames.popleft() if self._frames else None

    def await_room(self) -> None:
        """Wait until a frame can be sent.

        Raises:
            Cancelled: As `read`.
        """
        while self._sending and not self.is_gone:
            self.turn()
        if self.is_gone:
            raise _gone()

    def put(self, frame: bytes) -> None:
        """Send one frame now, when there is room."""
        if len(frame) > STEP_BYTES and not self._count_unlocked(frame):
            return
        self._send(frame, NO_FLAGS)

    # Private helpers.

    def _receive_ahead(self) -> None:
        """Receive the frames that have come, some ahead of the function; called by the thread that polls."""
        frames, poll, lock = self._frames, self._poll, self.lock
        most = AHEAD if self._is_accepted else 1  # the function decides whether an end of the input has to settle
        while not self.is_ended and not self.is_gone and len(frames) < most:
            if not self._reading:
                with lock:
                    self.ask()
            event = poll(0)
            if event.completion_type != DONE:
                return
            self._handle(event)
            if frames and len(frames[-1]) > _LARGE:
                return

    def _await_sent(self) -> None:
        """Wait until no send is under way; input is received meanwhile, as far as it may be (R-126)."""
        with self.lock:
            self._polling = True
        while self._sending and not self.is_gone:
            event = self._poll(0)
            if event.completion_type != DONE:
                if self._has_room():
                    with self.lock:
                        self.ask()
                self._act(self._wait(None if self._until is None else self._settled_at))
            else:
                self._handle(event)
        self._polling = False

    def _has_room(self) -> bool:
        frames = self._frames
        return len(frames) < self._high_frames and sum(map(len, frames)) < self._high_bytes

    def _act(self, event: Any) -> None:
        if event.completion_type == DONE:
            self._handle(event)
        else:
            self._believe()

    @property
    def _settled_at(self) -> float:
        """The time at which the half-close has settled, on the clock of completion queues."""
        assert self._until is not None
        return time.time() + self._until - time.monotonic()

    def _wait(self, until: float | None = None) -> Any:
        """The next event, or an empty one at ``until``; ``before_wait`` is called before the thread sleeps."""
        self._gate.leave(self._ticket)
        if self.before_wait is not None:
            self.before_wait()
        event = self._poll(until)
        if self._gate.is_crowded:
            self._gate.enter(self._ticket)
        return event


def _gone() -> Cancelled:
    return Cancelled()
