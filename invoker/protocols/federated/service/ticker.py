"""`Ticker`: a timer on the event loop, which calls `tick` of a coordinator when one of its timers is due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)


class Ticking(Protocol):
    """An object that has timers on a clock of its own."""

    def next_tick(self) -> float | None:
        """The time of the next timer; None: no timer is set."""

    def tick(self) -> None:
        """Run all timers that are due."""


class Ticker:
    """Calls a coordinator when its timers are due.

    Args:
        coordinator: The object to call.
        now: The clock of the coordinator, in seconds.
    """

    def __init__(self, coordinator: Ticking, now: Callable[[], float]) -> None:
        self._coordinator = coordinator
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = float("inf")
        self._is_stopped = False

    def wake(self, at: float) -> None:
        """Arrange a call at this time, which may be earlier than the next known one."""
        if at < self._due and not self._is_stopped:
            self._due = at
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(max(0.0, at - self._now()), self._tick)

    def stop(self) -> None:
        """Cancel the timer."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer, self._due = None, float("inf")
        try:
            self._coordinator.tick()
        except Exception:
            log.exception("the coordinator of federated rounds failed")
        if (due := self._coordinator.next_tick()) is not None:
            self.wake(due)
