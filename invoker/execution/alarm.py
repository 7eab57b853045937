"""`Alarm`: ends the invocations of a loop that reach their time limit, with one timer for all.

Nearly every invocation with a time limit ends long before it. A timer for each would be put into the loop's heap and be
cancelled; so there is one, for the limit that comes first, which stays where it is when that invocation ends early.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from invoker.core.limits import TimeLimit
from invoker.execution.bodies.runner import Runner

_NEVER: Final = float("inf")
_EARLY_S: Final = 0.001
"""The loop may call by so much too early, as its clock ticks."""


class Alarm:
    """The time limits of the invocations that run on one loop.

    Args:
        end: Ends an invocation.

    Attributes:
        limits: The limits of running invocations.
    """

    def __init__(self, end: Callable[[Runner, TimeLimit], None]) -> None:
        self.limits: dict[Runner, TimeLimit] = {}
        self._end = end
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = _NEVER  # on the clock of ``time.monotonic``

    def add(self, runner: Runner, limit: TimeLimit) -> None:
        """End an invocation at its time limit, unless it is dropped before."""
        self.limits[runner] = limit
        if limit.ends_at < self._rings_at:
            self._set(limit.ends_at, runner.loop)

    def drop(self, runner: Runner) -> None:
        """Forget an invocation, which has ended, or never had a limit."""
        self.limits.pop(runner, None)

    def _set(self, at: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = loop.call_later(at - time.monotonic(), self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self._rings_at = None, _NEVER
        now = time.monotonic() + _EARLY_S
        for runner, limit in [(one, limit) for one, limit in self.limits.items() if limit.ends_at <= now]:
            if self.limits.pop(runner, None) is not None:  # the end of another invocation may have ended it
                self._end(runner, limit)
        if self.limits:
            first = min(limit.ends_at for limit in self.limits.values())
            if first < self._rings_at:
                self._set(first, loop)
