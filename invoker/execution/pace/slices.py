"""`Slices`: lets only a few bodies that never wait continue in one turn of the loop.

A body that never waits sends a *slice* of its outputs, then lets other bodies run. The slices of a thousand such bodies
together hold the loop for a second, and a client that connects then waits for several turns. So of the bodies that want
another slice, a few continue in each turn, and the others wait in order of arrival.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Final

SLICE: Final = 32
"""The number of outputs in a slice."""

MOST: Final = 8
"""The most slices in one turn of the loop; with short outputs they take about 6 ms."""


class Slices:
    """Limits how many bodies of one loop that have given a slice continue in one turn; used on that loop only.

    Args:
        most: How many bodies continue in one turn.
    """

    __slots__ = ("_given", "_most", "_parked")

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._given = 0  # slices since the turn began; when they reach the limit, bodies wait for the next turn
        self._parked: deque[asyncio.Future[None]] = deque()

    def next(self) -> Awaitable[None]:
        """The future that a body awaits after a slice, until it may give another one in a later turn."""
        return self.wait() or asyncio.sleep(0)

    def wait(self) -> asyncio.Future[None] | None:
        """The future that a body awaits before it continues after another wait; None: it may continue at once."""
        if self._given < self._most:
            self._given += 1
            if self._given == self._most:
                loop = asyncio.get_running_loop()
                loop.call_soon(self._turn, loop)
            return None
        parked = asyncio.get_running_loop().create_future()
        self._parked.append(parked)
        return parked

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._given, parked = 0, self._parked
        while parked and self._given < self._most:
            if not (one := parked.popleft()).done():  # its body was cancelled
                one.set_result(None)
                self._given += 1
        if self._given == self._most:
            loop.call_soon(self._turn, loop)
