"""An event loop whose time is virtual: when nothing is ready, it is at once the time of the next timer."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

_MOST_TURNS = 20_000


class Stuck(Exception):
    """Everything waits, and nothing will come; or somebody keeps the loop busy, and time stands still."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop of one run.

    Attributes:
        troubles: What its exception handler was told.
    """

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Leaper(self))
        self.troubles: list[str] = []
        self.set_exception_handler(lambda _, context: self.troubles.append(str(context)))

    def time(self) -> float:
        """Seconds since the loop began."""
        return self._now

    def leap(self, seconds: float) -> None:
        """It is later."""
        self._now += seconds


class _Leaper(selectors.DefaultSelector):
    """Waits for nothing but time, of which it has plenty."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        self._turns = 0 if timeout else self._turns + 1
        if self._turns > _MOST_TURNS:
            self._turns = 0
            raise Stuck("the loop is busy, and nothing happens")
        if timeout is None:
            raise Stuck("everything waits, and nothing will come")
        if timeout > 0:
            self._loop.leap(timeout)
        return []
