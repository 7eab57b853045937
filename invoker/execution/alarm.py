"""`Alarm`: ends the invocations of a loop that reach their time limit, with one timer for all of them.

Nearly every invocation with a time limit ends long before it. One timer per invocation would be added to the loop's
heap only to be cancelled. So there is a single timer, set for the earliest limit; it is not moved when that invocation
ends early.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from invoker.core.invocation import Invocation
from invoker.core.limits import TimeLimit

_NEVER: Final = float("inf")
_EARLY_S: Final = 0.001
"""Seconds by which the loop may run a timer too early, because its clock has a limited resolution."""


class Limited(Protocol):
    """Runs an invocation that has a time limit."""

    loop: asyncio.AbstractEventLoop

    @property
    def host(self) -> Any:
        """Its ``finished`` ends the invocation, as `Host.finished` does."""

    @property
    def invocation(self) -> Invocation:
        """The invocation."""


class Alarm:
    """Watches the time limits of the invocations that run on one loop.

    Args:
        end: Ends an invocation.

    Attributes:
        limits: The limits of running invocations.
    """

    def __init__(self, end: Callable[[Limited, TimeLimit], None]) -> None:
        self.limits: dict[Limited, TimeLimit] = {}
        self._end = end
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = _NEVER  # on the clock of ``time.monotonic``

    def add(self, runner: Limited, limit: TimeLimit) -> None:
        """End an invocation at its time limit, unless it is dropped before."""
        self.limits[runner] = limit
        if limit.ends_at < self._rings_at:
            self._set(limit.ends_at, runner.loop)

    def drop(self, runner: Limited) -> None:
        """Stop watching an invocation that has ended; does nothing if it had no limit."""
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
            if self.limits.pop(runner, None) is not None:  # ending another one may have ended this one too
                self._end(runner, limit)
        if self.limits:
            first = min(limit.ends_at for limit in self.limits.values())
            if first < self._rings_at:
                self._set(first, loop)
