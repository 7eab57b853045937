"""A caller and its wire as a script: whoever waits for the wire lets the caller, or time, take the next step.

So one thread is enough, and chance decides how far the caller is whenever the function looks at its wire, writes, or
rests. Bodies with several outputs have real threads, which take turns under the wire's lock.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from invoker.core.steps import Trailers
from invoker.errors import Cancelled
from invoker.execution.pace.gate import Pace
from tests.simulate.peer import Ending, Reads
from tests.simulate.seen import Seen, Violation

_WEDGED_S = 20.0


class ScriptWire:
    """The caller of one conversation, and what a line is to its thread.

    Args:
        seen: What the caller is to do, and what it sees.
        random: Decides how quick the caller is.
        leap: Moves the clock to the next thing that happens by itself; False if nothing will.
    """

    def __init__(self, seen: Seen, random: Random, leap: Callable[[float | None], bool]) -> None:
        self.lock = threading.RLock()
        self.seen, self.plan = seen, seen.plan
        self.is_gone = self.is_ended = self.is_idle = self.settles = False
        self.pace = Pace()
        self.status: tuple[int, str] | None = None
        self.trailers: Trailers = ()
        self.changed: threading.Condition | None = None
        self._random, self._leap = random, leap
        self._frames: deque[bytes] = deque()
        self._held: bytes | None = None
        self._on_way = 0  # frames that were sent, and that the caller has not read
        self._sent = 0
        self._has_ended = False

    # What the caller does.

    def act(self) -> bool:
        """Let the caller do one thing; False if it has nothing to do."""
        deeds: list[Callable[[], None]] = []
        plan, has_sent = self.plan, self._sent == len(self.plan.frames)
        is_reading = plan.reads is Reads.ALWAYS or (plan.reads is Reads.LATE and has_sent and self._has_ended)
        if self._on_way and is_reading:
            deeds.append(self._take)
        if not self.is_gone:
            if not has_sent and len(self._frames) < plan.window:
                deeds.append(self._send)
            elif has_sent and not self._has_ended:
                deeds.append(self._end)
        if deeds:
            self._random.choice(deeds)()
        return bool(deeds)

    def act_perhaps(self) -> None:
        """Let the caller do some things, or none."""
        for _ in range(self._random.choice((0, 0, 1, 3))):
            self.act()

    def gone(self) -> None:
        """The caller has left, or its deadline has passed."""
        self.is_gone = self.seen.is_gone = True

    def _send(self) -> None:
        self._frames.append(self.plan.frames[self._sent])
        self._sent += 1

    def _take(self) -> None:
        self._on_way -= 1

    def _end(self) -> None:
        self._has_ended = True
        if self.plan.ending is Ending.HALF_CLOSE:
            self.is_ended = True
        elif self.plan.ending is not Ending.SILENCE:
            self.gone()

    # For the thread that runs the function.

    def read(self) -> bytes | None:
        """Wait for the next frame."""
        self.act_perhaps()
        self.is_idle = True
        while not self._frames and not self.is_ended and not self.is_gone:
            self.flush()
            self._wait()
        self.is_idle = False
        self._fail_if_gone()
        return self._frames.popleft() if self._frames else None

    def await_frame(self, delay_s: float) -> bool:
        """Wait at most so long for the next frame."""
        self.flush()
        while not self._frames and not self.is_ended and not self.is_gone:
            if self._random.random() < 0.3 or not self.act():
                self._leap(delay_s)
                break
        return bool(self._frames) or self.is_gone

    def write(self, frame: bytes, *, hold: bool) -> None:
        """Send one frame, or hold it; waits while the caller is slow."""
        if self._held is not None:
            self._await_room()
            self.flush()
        if hold:
            self._held = frame
        else:
            self._await_room()
            if not self.is_gone:
                self._put(frame)
        self.act_perhaps()
        self._fail_if_gone()

    def accepted(self) -> None:
        """Headers are of no interest."""

    def look(self) -> bool:
        """Whether the caller is gone."""
        with self.lock:
            self.act_perhaps()
        return self.is_gone

    def look_ahead(self) -> Sequence[bytes]:
        """The frames that wait."""
        return tuple(self._frames)

    def refuse(self, code: int, detail: str) -> bool:
        """Send the status while the thread is busy."""
        with self.lock:
            if self.is_idle or self.is_gone or (self._held is not None and not self._has_room):
                return False
            self.send_status(code, detail)
            self.is_gone = True
        return True

    def finish(self, code: int, detail: str, trailers: Trailers = ()) -> bool:
        """Send what is held, then the status."""
        with self.lock:
            self.send_status(code, detail, trailers)
        return True

    def cut(self, code: int, detail: str) -> None:
        """End the conversation with a status, from any thread."""
        self.status = self.status or (code, detail)
        self.is_gone = True

    def flush(self) -> None:
        """Send what is held, if there is room; the sweeper does it as well."""
        if self._held is not None and self._has_room and not self.is_gone:
            held, self._held = self._held, None
            self._put(held)

    # For several threads, with the lock held.

    def share(self) -> threading.Condition:
        """From now on several threads use this wire."""
        self.flush()
        self.changed = _Patient(self.lock)
        return self.changed

    @property
    def is_done(self) -> bool:
        """Whether no event comes any more."""
        return self.status is not None

    def turn(self) -> None:
        """One thing happens, or another thread goes on."""
        assert self.changed is not None
        if self.act() or self._leap(None):
            self.changed.notify_all()
        else:
            self.changed.wait()

    def glance(self) -> None:
        """Take what is there already."""

    def ask(self) -> None:
        """Receive one more frame."""
        if self.is_ended or self.is_gone:
            raise Violation("a frame is asked for behind the end")

    def next_frame(self) -> bytes | None:
        """A frame that is here already."""
        return self._frames.popleft() if self._frames else None

    def await_room(self) -> None:
        """Wait until a frame can be sent."""
        while not self._has_room and not self.is_gone:
            self.turn()
        self._fail_if_gone()

    def put(self, frame: bytes) -> None:
        """Send one frame now."""
        if not self._has_room:
            raise Violation("a frame was sent although there is no room")
        self._put(frame)

    def send_status(self, code: int, detail: str, trailers: Trailers = ()) -> None:
        """Send the status, behind what is held."""
        if self.status is None:
            held, self._held = self._held, None
            if held is not None and not self.is_gone:
                self._put(held)
            self.status, self.trailers = (code, detail), trailers

    # Inside.

    @property
    def _has_room(self) -> bool:
        return self._on_way < self.plan.window

    def _await_room(self) -> None:
        self.is_idle = True
        while not self._has_room and not self.is_gone:
            self._wait()
        self.is_idle = False

    def _wait(self) -> None:
        if not self.act() and not self._leap(None):
            raise Violation("everything waits, and nothing will come")

    def _put(self, frame: bytes) -> None:
        if self.status is not None:
            raise Violation("a frame behind the status")
        self._on_way += 1
        self.seen.take(frame)

    def _fail_if_gone(self) -> None:
        if self.is_gone:
            raise Cancelled("the peer cancelled, or is gone")


class _Patient(threading.Condition):
    """Tells of a dead-lock instead of waiting for ever."""

    def wait(self, timeout: float | None = None) -> bool:
        if not super().wait(_WEDGED_S if timeout is None else timeout) and timeout is None:
            raise Violation("the threads of one conversation wait for each other")
        return True
