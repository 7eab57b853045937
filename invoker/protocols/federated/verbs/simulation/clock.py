"""An event loop with simulated time: when no callback is ready, the clock jumps to the next timer.

Computing takes no simulated time. The clock stops while a function runs in a thread, so that the result of a simulation
does not depend on the speed of the machine.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, Final

_POLL_S: Final = 0.0005
"""The interval in seconds at which running threads are checked; a thread with a result wakes the loop at once."""

_LEAST_S: Final = 1e-9
"""The smallest jump in seconds: a smaller one could be lost by rounding, and the loop would never advance."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """The event loop of a simulation.

    Attributes:
        is_computing: Returns whether a thread computes, so that the clock must not advance.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self.is_computing: Callable[[], bool] = lambda: False
        super().__init__(_Leaper(self))

    def time(self) -> float:
        """The simulated seconds since the loop started."""
        return self._now

    def leap(self, seconds: float) -> None:
        """Advance the clock by ``seconds``, and at least by `_LEAST_S`."""
        self._now += max(seconds, _LEAST_S)


class _Leaper(selectors.DefaultSelector):
    """A selector that waits only for signals and threads; instead of any other wait it advances the clock."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout == 0:
            return super().select(0)
        if self._loop.is_computing():
            return super().select(_POLL_S)
        # A thread that has just ended may have a result, which has to be handled first.
        if events := super().select(0):
            return events
        if timeout is None:
            return super().select(None)
        self._loop.leap(timeout)
        return []
