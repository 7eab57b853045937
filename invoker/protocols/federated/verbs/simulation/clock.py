"""An event loop with simulated time: when no callback is left to run, its clock jumps to the next timer.

Computing takes real time and no simulated time. While a function runs in a thread, the clock stands still, so that what
happens when does not depend on how fast this machine is.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, Final

_POLL_S: Final = 0.0005
"""Seconds between two checks whether a thread still computes; a thread that has a result wakes the loop at once."""

_LEAST_S: Final = 1e-9
"""The shortest leap in seconds: a smaller one could be lost in a large time, and the loop would turn for ever."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """The loop of a simulation.

    Attributes:
        is_computing: Whether some thread computes, so that no time may pass.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self.is_computing: Callable[[], bool] = lambda: False
        super().__init__(_Leaper(self))

    def time(self) -> float:
        """Simulated seconds since the loop began."""
        return self._now

    def leap(self, seconds: float) -> None:
        """Move the clock on by ``seconds``, and at least by `_LEAST_S`."""
        self._now += max(seconds, _LEAST_S)


class _Leaper(selectors.DefaultSelector):
    """Waits only for signals and threads; all other waiting is a leap of the clock."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout == 0:
            return super().select(0)
        if self._loop.is_computing():
            return super().select(_POLL_S)
        # A thread that has just stopped computing may have left a result, which comes first.
        if events := super().select(0):
            return events
        if timeout is None:
            return super().select(None)
        self._loop.leap(timeout)
        return []
