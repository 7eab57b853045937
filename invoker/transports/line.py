"""`Line`: one gRPC call on a completion queue of its own, driven by the thread that runs its function.

Theory. A call allows one receive and one send at a time. A thread that *reads* posts a receive and waits for it on
the queue; a thread that *writes* need not wait, it only may not post a send before the one under way is done. Two
operations that are posted as one batch come back as one event, which is half of the price; so a frame that was
written may be *held* until the next read, and leaves together with it. Who holds a frame promises that the next read or
write follows at once; the `Sweeper` sends what is held for longer than one of its beats.

=========== ============================ =======================================================
state       means                        left by
=========== ============================ =======================================================
open        frames may come and go       an empty receive, ``finish()``, an event that tells a cancel
half-closed no frame will come           ``finish()``, an event that tells a cancel
gone        the peer will get nothing    nothing
finished    the status is under way      nothing
=========== ============================ =======================================================

One lock guards posting, since the sweeper and the drain post too; nobody waits on the queue while holding it. Exactly one
thread polls at a time (``_polling``): an event that another thread took would never come back. An empty receive is an
end or a cancel; of the two, a cancel has its close event on the queue at the same moment (R-109), so one look at the
queue tells them apart without a delay.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from invoker.errors import Cancelled
from invoker.transports.details import clip
from invoker.transports.cygrpc import BUFFER_HINT, NO_FLAGS, cygrpc

__all__ = ["Line"]

# Tags of events; compared by identity.
_SHORT_S = 0.001
"""A wait that is over within this time is none for `Line.before_wait`."""

_CLOSE, _BOTH, _READ, _SENT, _STATUS = object(), object(), object(), object(), object()


class Line:
    """One call; see the module.

    Args:
        call: As grpcio's private layer gives it.
        queue: Of this call alone.
        sweeper: Whom to tell of a frame that is held.
        high_frames: Unread frames beyond which no more is received.
        high_bytes: Unread bytes beyond which no more is received.

    Attributes:
        is_ended: The peer has half-closed.
        is_gone: The peer cancelled, its deadline passed, or the connection broke.
        before_wait: Called once, when the line's thread is about to wait for longer than a moment, for the first time.
        changed: Notified of every event, when several threads share the line; on the line's lock.
        seen: What the sweeper saw held at its last beat.
    """

    __slots__ = (
        "_call", "_frames", "_held", "_high_bytes", "_high_frames", "_is_accepted", "_is_finished", "_pending", "_poll", "_polling",
        "_post", "_reading", "_receive", "_sending", "_sweeper", "before_wait", "changed", "is_ended", "is_gone", "is_swept", "lock",
        "queue", "seen",
    )  # fmt: skip

    def __init__(
        self, call: Any, queue: Any, sweeper: Any, *, high_frames: int = 256, high_bytes: int = 1 << 22
    ) -> None:
        self.queue = queue
        self.lock = threading.Lock()
        self.changed: threading.Condition | None = None
        self.before_wait: Callable[[], None] | None = None
        self.is_ended = False
        self.is_gone = False
        self.is_swept = False
        self.seen: bytes | None = None
        self._call = call
        self._poll = queue.poll
        self._post = call.start_server_batch
        self._receive = cygrpc.ReceiveMessageOperation(NO_FLAGS)
        self._sweeper = sweeper
        self._high_frames = high_frames
        self._high_bytes = high_bytes
        self._frames: deque[bytes] = deque()
        self._held: bytes | None = None
        self._polling = False
        self._reading = self._sending = False
        self._is_accepted = self._is_finished = False
        self._pending = 0

    # For the thread that runs the function.

    def open(self) -> None:
        """Watch for the end of the call and ask for the first frame."""
        self._post((cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS),), _CLOSE)
        self._post((self._receive,), _READ)
        self._reading = True
        self._pending = 2

    def accepted(self) -> None:
        """Send the response headers (R-133), and ask for the next frame in the same breath."""
        with self.lock:
            if self.is_gone:
                return
            headers = cygrpc.SendInitialMetadataOperation((), NO_FLAGS)
            self._is_accepted = True
            self._pending += 1
            if self._reading or self.is_ended:
                self._post((headers,), _STATUS)
            else:
                self._reading = True
                self._post((headers, self._receive), _READ)

    def read(self) -> bytes | None:
        """Wait for the next frame; None when the peer has half-closed.

        Raises:
            Cancelled: The peer cancelled, its deadline passed, or it is gone.
        """
        frames = self._frames
        if frames and not self.is_gone:
            return frames.popleft()
        if self._sending and self._held is not None:
            self._settle()
        with self.lock:
            held = self._held
            if held is None or self._reading or self.is_ended:
                self._ask()
            elif not self.is_gone:
                self._held = None
                self._pending += 1
                self._reading = self._sending = True
                self._post((cygrpc.SendMessageOperation(held, NO_FLAGS), self._receive), _BOTH)
            self._polling = True
        while not frames and not self.is_ended and not self.is_gone:
            self._handle(self._poll() if self.before_wait is None else self._wait())
        self._polling = False
        return self._taken()

    def write(self, frame: bytes, *, hold: bool) -> None:
        """Send one frame; waits while the one before it is under way, so a slow peer suspends its function (R-127).

        Args:
            frame: Serialised.
            hold: The next read or write follows at once, so the frame may wait for it.

        Raises:
            Cancelled: As `read`.
        """
        if self._held is not None:
            self._settle()
            with self.lock:
                if self._held is not None and not self.is_gone:
                    self._send(self._held, BUFFER_HINT if hold else NO_FLAGS)
        if hold:
            self._held = frame
            if not self.is_swept:
                self._sweeper.watch(self)
        else:
            self._settle()
            with self.lock:
                if not self.is_gone:
                    self._send(frame, NO_FLAGS)
        if self.is_gone:
            raise _gone()

    def look(self) -> bool:
        """Whether the peer is gone, by what has happened so far; does not wait."""
        with self.lock:
            self.glance()
        return self.is_gone

    def finish(self, code: int, detail: str) -> bool:
        """Send what is held, then the status; the first one counts.

        Returns:
            Whether every operation is done, so that the queue can serve another call.
        """
        if self._held is not None and self._sending:
            self._settle()
        with self.lock:
            self.send_status(code, detail)
            if not self._polling:
                self.glance()
        return self._pending == 0

    # With the lock held.

    def send_status(self, code: int, detail: str) -> None:
        """Post the status, behind what is held."""
        if self._is_finished:
            return
        self._is_finished = True
        status = cygrpc.SendStatusFromServerOperation((), code, clip(detail) if detail else b"", NO_FLAGS)
        held, self._held = self._held, None
        self._pending += 1
        if not self._is_accepted:
            self._post((cygrpc.SendInitialMetadataOperation((), NO_FLAGS), status), _STATUS)
        elif held is None or self.is_gone:
            self._post((status,), _STATUS)
        else:
            self._post((cygrpc.SendMessageOperation(held, NO_FLAGS), status), _STATUS)

    def ask(self) -> None:
        """Ask for the next frame, unless that is under way."""
        self._ask()

    def flush(self) -> None:
        """Send what is held."""
        if self._held is not None and not self._sending and not self.is_gone:
            self._send(self._held, NO_FLAGS)

    def glance(self) -> None:
        """Take what is on the queue without waiting, unless somebody waits there already."""
        while not self._polling and self._pending:
            event = self._poll(0)
            if event.completion_type != _DONE:
                return
            self._handle(event)

    def turn(self) -> None:
        """Wait for one event, or for the thread that does; the lock is released meanwhile. For shared lines."""
        assert self.changed is not None
        if self._polling:
            self.changed.wait()
            return
        self._polling = True
        self.lock.release()
        try:
            event = self._poll()
        finally:
            self.lock.acquire()
            self._polling = False
        self._handle(event)
        self.changed.notify_all()

    # Inside.

    @property
    def is_idle(self) -> bool:
        """Whether its thread waits for the peer."""
        return self._polling

    @property
    def held(self) -> bytes | None:
        """What waits for the next read or write."""
        return self._held

    @property
    def is_done(self) -> bool:
        """Whether every operation has ended."""
        return self._pending == 0

    def next_frame(self) -> bytes | None:
        """A frame that is here already; with the lock held, for shared lines."""
        return self._frames.popleft() if self._frames else None

    def share(self) -> threading.Condition:
        """From now on several threads use this line, each with the lock held; the condition tells of every event."""
        self.changed = threading.Condition(self.lock)
        return self.changed

    def await_room(self) -> None:
        """Wait, with the lock held, until a frame can be sent.

        Raises:
            Cancelled: As `read`.
        """
        while self._sending and not self.is_gone:
            self.turn()
        if self.is_gone:
            raise _gone()

    def put(self, frame: bytes) -> None:
        """Send one frame now; with the lock held, and when there is room."""
        self._send(frame, NO_FLAGS)

    def cut(self, code: int, detail: str) -> None:
        """End the call with a status, whatever its thread does."""
        self._call.cancel(code, detail)

    def _ask(self) -> None:
        if self._held is not None and not self._sending:
            self._send(self._held, NO_FLAGS)
        if not self._reading and not self.is_ended and not self.is_gone:
            self._reading = True
            self._pending += 1
            self._post((self._receive,), _READ)

    def _send(self, frame: bytes, flags: int) -> None:
        self._held = None
        self._sending = True
        self._pending += 1
        self._post((cygrpc.SendMessageOperation(frame, flags),), _SENT)

    def _settle(self) -> None:
        """Wait until no send is under way; input is received meanwhile, as far as it may be (R-126)."""
        while self._sending and not self.is_gone:
            with self.lock:
                self._polling = True
            event = self._poll(0)
            if event.completion_type != _DONE:
                with self.lock:
                    if self._has_room():
                        self._ask()
                event = self._wait()
            self._handle(event)
            self._polling = False

    def _wait(self) -> Any:
        """The next event; whoever counts on this thread is told before it sleeps."""
        if self.before_wait is not None:
            event = self._poll(0)
            if event.completion_type == _DONE:
                return event
            event = self._poll(time.time() + _SHORT_S)
            if event.completion_type == _DONE:
                return event
            self.before_wait()
            self.before_wait = None
        return self._poll()

    def _has_room(self) -> bool:
        frames = self._frames
        return len(frames) < self._high_frames and sum(map(len, frames)) < self._high_bytes

    def _taken(self) -> bytes | None:
        if not self.is_gone:
            if self._frames:
                return self._frames.popleft()
            self.look()
        if self.is_gone:
            raise _gone()
        return None

    def _handle(self, event: Any) -> None:
        tag = event.tag
        self._pending -= 1
        if tag is _BOTH or tag is _READ:
            self._reading = False
            if tag is _BOTH:
                self._sending = False
            frame = event.batch_operations[-1].message()
            if frame is not None:
                self._frames.append(frame)
            elif event.success:
                self.is_ended = True
            else:
                self.is_gone = True
        elif tag is _SENT:
            self._sending = False
            if not event.success:
                self.is_gone = True
        elif tag is _CLOSE and event.batch_operations[0].cancelled():
            self.is_gone = True


_DONE = cygrpc.CompletionType.operation_complete if cygrpc is not None else None


def _gone() -> Cancelled:
    return Cancelled("the peer cancelled, or is gone")
