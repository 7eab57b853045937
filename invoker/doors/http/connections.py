"""`Connections`: the open connections of a door, which of them idle, and who waits until there are none."""

from __future__ import annotations

import asyncio
import enum
from typing import Protocol

__all__ = ["Connection", "Connections", "State"]

_MANY = 2**31 - 1


class State(enum.Enum):
    """Where a connection stands."""

    IDLE = "between requests"
    BUSY = "a request is under way"
    STREAMING = "its response is written while the function gives it"
    WRITING = "its response is written"
    LINGERING = "the rest of its body is dropped"
    ENDING = "nothing more is taken"


class Connection(Protocol):
    """One connection, whatever is spoken on it."""

    def end_when_idle(self) -> None:
        """End now, or with the last request."""

    def abort(self) -> None:
        """End now, without ceremony."""

    def cut(self) -> None:
        """End now, with all that runs for it."""


class Connections:
    """All connections of one door.

    Attributes:
        most: Beyond so many, one without a request is ended for each new one.
        open: All of them.
        idle: Those without a request, the one that has been so for longest first.
    """

    def __init__(self) -> None:
        self.most = _MANY
        self.open: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        self._none = asyncio.Event()
        self._none.set()

    def enter(self, connection: Connection) -> None:
        """A connection is there."""
        self.open.add(connection)
        self._none.clear()
        if len(self.open) > self.most:
            self.evict()

    def leave(self, connection: Connection) -> None:
        """A connection is over, with all that ran for it. Idempotent."""
        self.open.discard(connection)
        self.idle.pop(connection, None)
        if not self.open:
            self._none.set()

    def evict(self) -> bool:
        """End the connection that has been without a request for longest; whether there was one."""
        longest = next(iter(self.idle), None)
        if longest is None:
            return False
        del self.idle[longest]
        longest.abort()
        return True

    async def end(self, grace_s: float, cut_s: float) -> int:
        """End all of them.

        Args:
            grace_s: For those that have a request.
            cut_s: How long it may then take until what ran for them has ended.

        Returns:
            How many were cut.
        """
        for one in list(self.open):
            one.end_when_idle()
        await self._over(grace_s)
        left = list(self.open)
        for one in left:
            one.cut()
        if left:
            await self._over(cut_s)
        return len(left)

    async def _over(self, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self._none.wait()
        except TimeoutError:
            pass  # the caller sees what is left
