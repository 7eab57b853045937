"""`Timers`: actions that are due at certain times of an injected clock; the owner's one timer calls `run`."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Timer:
    """A function that is called once at its time, unless the timer is cancelled before."""

    __slots__ = ("_action", "_timers", "at")

    def __init__(self, timers: Timers, at: float, action: Callable[[], object]) -> None:
        self.at = at
        self._timers = timers
        self._action: Callable[[], object] | None = action

    @property
    def is_cancelled(self) -> bool:
        """Whether the timer was cancelled, or has fired."""
        return self._action is None

    def cancel(self) -> None:
        """Drop the timer, so that it never fires. Idempotent."""
        if self._action is not None:
            self._action = None
            self._timers.forget()

    def fire(self) -> None:
        """Call the action, unless the timer was cancelled."""
        action, self._action = self._action, None
        if action is not None:
            action()


class Timers:
    """Many timers, for an owner that calls `run` when the `next` one is due.

    Args:
        now: The clock, in seconds; it never goes back.
        wake: Called with the time of a new timer that is earlier than all others; None: the owner asks for `next`.
    """

    def __init__(self, now: Callable[[], float], wake: Callable[[float], None] | None = None) -> None:
        self.now = now
        self._wake = wake
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._cancelled = 0

    def after(self, delay_s: float, action: Callable[[], object]) -> Timer:
        """Call ``action`` after ``delay_s`` seconds, unless the timer is cancelled."""
        timer = Timer(self, self.now() + delay_s, action)
        heapq.heappush(self._heap, (timer.at, next(self._numbers), timer))
        if self._wake is not None and self._heap[0][2] is timer:
            self._wake(timer.at)
        return timer

    def next(self) -> float | None:
        """The time at which the next timer is due; None if there is none."""
        while self._heap and self._heap[0][2].is_cancelled:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def run(self) -> None:
        """Call all timers that are due, in the order of their times."""
        now = self.now()
        while (at := self.next()) is not None and at <= now:
            heapq.heappop(self._heap)[2].fire()

    def forget(self) -> None:
        """Count a cancelled timer.

        Cancelled timers are removed when they are half of all timers, so the number of active timers bounds the memory.
        """
        self._cancelled += 1
        if 2 * self._cancelled > max(64, len(self._heap)):
            self._heap = [one for one in self._heap if not one[2].is_cancelled]
            heapq.heapify(self._heap)
            self._cancelled = 0
