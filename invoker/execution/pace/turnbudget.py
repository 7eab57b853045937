"""`TurnBudget`: limits the time in which bodies decode and send large values in one turn of the loop.

A body whose next message has already come does not wait for it. So it would decode all messages that have come in a
single turn, and there may be a thousand messages that take some milliseconds each, or a thousand calls that begin in
the same turn. Likewise a value of ten megabytes is copied for the wire, and a hundred calls may do so in one turn. So
the time of all bodies is added up, and once it exceeds the budget, bodies wait here. One of them continues in each
turn, in order of arrival, until none is left.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

TURN_S: Final = 0.005
"""The budget: seconds of work after which bodies have to wait for a later turn."""

NOTED_S: Final = 0.0002
"""Work of fewer seconds is not added up, because a body has at most a few hundred messages here at a time."""


class TurnBudget:
    """The budget of one loop; used on that loop only.

    Attributes:
        is_spent: Whether code that wants to decode, or to send a large value, has to wait for `next`.
    """

    __slots__ = ("_parked", "_spent_s", "is_spent")

    def __init__(self) -> None:
        self.is_spent = False
        self._spent_s = 0.0
        self._parked: deque[asyncio.Future[None]] = deque()

    def spend(self, seconds: float) -> None:
        """Add the time that decoding or sending took."""
        self._spent_s += seconds
        if self._spent_s >= TURN_S and not self.is_spent:
            self.is_spent = True
            loop = asyncio.get_running_loop()
            loop.call_soon(self._turn, loop)

    def next(self) -> asyncio.Future[None]:
        """The future that a body awaits before it may continue once."""
        parked = asyncio.get_running_loop().create_future()
        self._parked.append(parked)
        return parked

    async def run(self, work: Callable[[], T]) -> T:
        """Do work that may take some milliseconds, in this turn or in a later one."""
        if self.is_spent:
            await self.next()
        began_s = time.monotonic()
        try:
            return work()
        finally:
            self.spend(time.monotonic() - began_s)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._spent_s = 0.0
        while self._parked:
            if not (one := self._parked.popleft()).done():  # its body was cancelled
                one.set_result(None)
                loop.call_soon(self._turn, loop)
                return
        self.is_spent = False
