"""`Gate`: lets one thread at a time do its work between two waits, so that they do not fight for the interpreter.

Each operation on a completion queue releases the interpreter's lock; with many threads at work, each release wakes
another one, and the machine is busy with switching. So they take turns, in order of arrival; a turn lasts from an event
to the next wait, or until others have waited for a batch of frames.

A turn in which nothing moves for two beats of the sweeper belongs to a function that blocks: all waiting threads are
let in at once, and for a second that function passes the gate without a turn. So user code that blocks stalls others
for some milliseconds at most, and once a second at most.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sized

_SLOW_S = 1.0

_STILL = 2
"""Beats after which a turn without a movement ends."""

_CROWD = 8
"""The fewest threads that take turns: with fewer, a thread that was woken by a single frame is done before a turn
pays."""


class Pace:
    """Until when a function passes the gate without a turn, on the clock of ``time.monotonic``."""

    __slots__ = ("slow_until",)

    def __init__(self, slow_until: float = 0.0) -> None:
        self.slow_until = slow_until


UNGATED = Pace(float("inf"))
"""The pace of threads that never take turns."""


class Ticket:
    """A thread's place at the gate.

    Args:
        pace: The pace of its function.
        work: The pending work of the thread's turn; the turn makes progress while its length changes.
    """

    __slots__ = ("bell", "pace", "turns", "work")

    def __init__(self, pace: Pace | None = None, work: Sized = ()) -> None:
        self.work = work
        self.bell = threading.Lock()
        self.bell.acquire()
        self.pace = pace or Pace()
        self.turns = 0


class Gate:
    """Lets one thread at a time take a turn; the module's docstring explains turns.

    Attributes:
        is_crowded: Whether there are so many threads that all of them should pass the gate, not only those with a batch
            of frames.

    Args:
        on_enter: Called whenever a thread begins a turn or waits for one, so that the sweeper watches for long turns.
    """

    def __init__(self, on_enter: Callable[[], None]) -> None:
        self.is_crowded = False
        self._on_enter = on_enter
        self._lock = threading.Lock()
        self._members = 0
        self._owner: Ticket | None = None
        self._waiting: deque[Ticket] = deque()
        self._seen: tuple[Ticket, int, int] | None = None
        self._still = 0  # the number of beats without progress

    def join(self) -> None:
        """Count one more thread that may come to the gate."""
        with self._lock:
            self._members += 1
            self.is_crowded = self._members > _CROWD

    def part(self) -> None:
        """Count one thread less, which will not come any more."""
        with self._lock:
            self._members -= 1
            self.is_crowded = self._members > _CROWD

    @property
    def is_waited_for(self) -> bool:
        """Whether another thread waits for a turn."""
        return bool(self._waiting)

    def enter(self, me: Ticket) -> None:
        """Wait for a turn, unless the function is slow."""
        slow_until = me.pace.slow_until
        if slow_until and slow_until > time.monotonic():
            return
        with self._lock:
            me.turns += 1
            if self._owner is None or self._owner is me:
                self._owner = me
                waits = False
            else:
                self._waiting.append(me)
                waits = True
        self._on_enter()
        if waits:
            me.bell.acquire()

    def leave(self, me: Ticket) -> None:
        """End the turn, if it has not been ended by `beat`."""
        if self._owner is me:
            with self._lock:
                if self._owner is me:
                    self._pass()

    def beat(self) -> bool:
        """End a turn in which nothing has moved for two beats, and return whether any thread is at the gate."""
        with self._lock:
            owner = self._owner
            now = None if owner is None else (owner, owner.turns, len(owner.work))
            self._still = self._still + 1 if now == self._seen else 0
            self._seen = now
            if owner is not None and self._still >= _STILL:
                owner.pace.slow_until = time.monotonic() + _SLOW_S
                self._owner = None
                while self._waiting:
                    self._waiting.popleft().bell.release()
            return self._owner is not None

    def _pass(self) -> None:
        if self._waiting:
            self._owner = self._waiting.popleft()
            self._owner.bell.release()
        else:
            self._owner = None
