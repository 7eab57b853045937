"""`Connections`: the open connections of a transport, which of them end to make room, and who waits for their end.

Theory. A process has so many file descriptors, and the transport takes a part of them, `most`. Beyond it, and where
there is no descriptor left, these are ended for newcomers, the ones that have been so for longest first:

1. those without a request, or whose response is written, except the newest ones: a newcomer needs a moment to ask;
2. those whose request is still to come as a whole, so that nothing runs for it: uploads that are slow.

A connection whose bytes are here and have not been read is not ended: they may be a request. If there is no descriptor
left, one that came within `NEW_S` and has sent nothing is not ended either; while there are only such, nobody is
accepted, and the backlog of the kernel holds newcomers.

Where everybody else is busy, the newcomers stay. They are answered what needs no function, such as a probe; calls are
refused while the transport is full, an eighth beyond `most`. Without that, a client that holds enough streams, or
WebSockets that wait for ever, would keep everybody out.
"""

from __future__ import annotations

import asyncio
import enum
import select
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

__all__ = ["NEW_S", "Connection", "Connections", "State"]

NEW_S: Final = 0.05
"""Seconds for which a silent connection is new: where descriptors are short, it is spared, and newcomers wait."""

_MANY = 2**31 - 1
_SPARE = 8
_AT_ONCE = 64


class State(enum.Enum):
    """What a connection is doing; the value says it in words."""

    IDLE = "between requests"
    BUSY = "a request is under way"
    STREAMING = "its response is written while the function gives it"
    WRITING = "its response is written"
    LINGERING = "the rest of its body is dropped"
    ENDING = "nothing more is taken"


class Connection(Protocol):
    """One connection, whatever is spoken on it."""

    def fileno(self) -> int:
        """The descriptor of its socket; negative: it has none any more."""

    def end_when_idle(self) -> None:
        """End now, or with the last request."""

    def abort(self) -> None:
        """End the connection now, without a farewell to the client."""

    def cut(self) -> None:
        """End the connection now, with all that runs for it."""


class Connections:
    """All connections of one transport.

    Attributes:
        most: Beyond this number, an old connection is ended for each new one, if one may be.
        open: All of them.
        idle: Those without a request, the one that has been so for longest first, and until when each is spared; None:
            it is not, since it has asked before, or has sent a part of a request.
        waiting: Those whose request has begun, and does not run before all of its body is here, in the same order.
    """

    def __init__(self) -> None:
        self.most = _MANY
        self.open: set[Connection] = set()
        self.idle: dict[Connection, float | None] = {}
        self.waiting: dict[Connection, None] = {}
        self._none = asyncio.Event()
        self._none.set()

    def enter(self, connection: Connection) -> None:
        """Count a new connection; if there are too many, idle ones are ended."""
        self.open.add(connection)
        self._none.clear()
        if len(self.open) > self.most:
            self.make_room()

    def meet(self, connection: Connection, *, is_new: bool) -> None:
        """Note a connection that has no request yet; if it is new, nothing of a request has come either."""
        self.idle[connection] = time.monotonic() + NEW_S if is_new else None
        self.enter(connection)

    def leave(self, connection: Connection) -> None:
        """Forget a connection that is over, with all that ran for it. Idempotent."""
        self.open.discard(connection)
        self.idle.pop(connection, None)
        self.waiting.pop(connection, None)
        if not self.open:
            self._none.set()

    @property
    def spare(self) -> int:
        """How many new connections are spared until their first request, and may be there beyond `most`."""
        return self.most // _SPARE + 1

    @property
    def is_full(self) -> bool:
        """Whether a call is to be refused, because there is nobody left who could be ended for it."""
        return len(self.open) > self.most + self.spare and not self._end(self.waiting)

    def make_room(self, others: int = 0) -> bool:
        """End a connection that is not new, and for which nothing runs; returns whether there was one.

        Args:
            others: Connections without a request that somebody else has.
        """
        return self._end(self.idle if len(self.idle) + others > self.spare else self.waiting)

    def evict(self) -> bool:
        """End any connection for which nothing runs, for want of descriptors; returns whether there was one."""
        now = time.monotonic()
        old = (one for one, spared_s in islice(self.idle.items(), _AT_ONCE) if spared_s is None or spared_s <= now)
        return self._end(self.idle, list(old)) or self._end(self.waiting)

    def _end(self, some: dict[Connection, Any], of: Sequence[Connection] | None = None) -> bool:
        for longest in _without_news(list(islice(some, _AT_ONCE)) if of is None else of):
            del some[longest]
            longest.abort()
            return True
        return False

    async def end(self, grace_s: float, cut_s: float) -> int:
        """End all of them.

        Args:
            grace_s: How long those that have a request may take.
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


def _without_news(connections: Sequence[Connection]) -> Iterator[Connection]:
    """Those without bytes that have come and are not read yet."""
    for one in connections:
        descriptor = one.fileno()
        poll = select.poll()
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
        if not poll.poll(0):
            yield one
