"""`Connections`: the open connections of a transport, which of them are ended to make room, and the wait for their end.

Theory. A process has a limited number of file descriptors, and the transport takes a part of them, `most`. When more
are open, or no descriptor is left, connections of two kinds are ended to make room for new ones. Those that have been
in their state longest are ended first:

1. those without a request, or whose response is written, except the newest ones: a new client needs a moment to send
   its request;
2. those whose request has not come completely, so that no function runs for it: slow uploads.

A connection is not ended if it has bytes that were not parsed: they may be a request. They may wait in its socket; or
they were read by the thread that leads, which then passed the connection on; or they came with the previous request.
If there is no descriptor left, one that came within `NEW_S` and has sent nothing is not ended either; while there are
only such connections, no others are accepted, and the backlog of the kernel holds new ones. If all other connections
are busy, new connections are accepted nevertheless, and their requests that need no function, such as a probe, are
answered; but calls are refused once the transport has an eighth more connections than `most`. Without that, a client
with enough open streams or idle WebSockets would keep all other clients out.
"""

from __future__ import annotations

import asyncio
import enum
import select
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

NEW_S: Final = 0.05
"""Seconds for which a silent connection counts as new: it is not ended for lack of descriptors; other connections
wait."""

CLOSE_S: Final = 5.0
"""Seconds that the client has to take the last bytes."""
FAREWELL_S: Final = 1.0
FAREWELL_BYTES: Final = 4 << 20
"""When a connection is ended, this many bytes are still read and dropped, for the seconds above: closing at once would
reset the connection, and the client might not read the last bytes."""

_MANY = 2**31 - 1
_SPARE = 8
_AT_ONCE = 64


class State(enum.Enum):
    """The states of a connection, with their descriptions."""

    IDLE = "between requests"
    BUSY = "a request is under way"
    STREAMING = "its response is written while the function gives it"
    WRITING = "its response is written"
    LINGERING = "the rest of its body is dropped"
    ENDING = "nothing more is taken"


class Connection(Protocol):
    """One connection, of any protocol."""

    @property
    def has_unparsed(self) -> bool:
        """Whether bytes were read from its socket that it has not parsed yet; they may be a request."""

    def fileno(self) -> int:
        """The descriptor of its socket; negative: it has none any more."""

    def end_when_idle(self) -> None:
        """End now, or with the last request."""

    def abort(self) -> None:
        """End the connection now, without a last message to the client."""

    def cut(self) -> None:
        """End the connection now, with all its running requests."""


class Connections:
    """All connections of one transport.

    Attributes:
        most: If there are more connections than this, an old one is ended for each new one, if any may be ended.
        open: All connections, also those that were ended to make room and are not over yet.
        idle: The connections without a request, the longest idle first, each with the time until which it is spared;
            None: it is not spared, because it has had a request before, or has sent a part of one.
        waiting: The connections that wait for the rest of a body before their request can run, the longest waiting
            first.
    """

    def __init__(self) -> None:
        self.most = _MANY
        self.open: set[Connection] = set()
        self._ended: set[Connection] = set()
        self.idle: dict[Connection, float | None] = {}
        self.waiting: dict[Connection, None] = {}
        self._none = asyncio.Event()
        self._none.set()

    def enter(self, connection: Connection, *, others: int = 0) -> None:
        """Count a new connection; if there are too many, an idle one is ended; for ``others`` see `make_room`."""
        self.open.add(connection)
        self._none.clear()
        if self.count > self.most:
            self.make_room(others)

    def meet(self, connection: Connection, *, is_new: bool) -> None:
        """Note a connection that has no request yet; a new connection has not sent anything either.

        It is idle only after room was made for it, since it must not be the one that is ended: its request may already
        have been read elsewhere.
        """
        self.enter(connection, others=1)
        self.idle[connection] = time.monotonic() + NEW_S if is_new else None

    def leave(self, connection: Connection) -> None:
        """Forget a connection that is over, with all its requests. Idempotent."""
        self.open.discard(connection)
        self._ended.discard(connection)
        self.idle.pop(connection, None)
        self.waiting.pop(connection, None)
        if not self.open:
            self._none.set()

    @property
    def count(self) -> int:
        """The number of connections without those that were ended to make room, which are over in the next turn."""
        return len(self.open) - len(self._ended)

    @property
    def spare(self) -> int:
        """How many new connections are spared until their first request, even beyond `most` connections."""
        return self.most // _SPARE + 1

    @property
    def is_full(self) -> bool:
        """Whether a call must be refused, because no connection is left that could be ended for it."""
        return self.count > self.most + self.spare and not self._end(self.waiting)

    def make_room(self, others: int = 0) -> bool:
        """End a connection that is not new and has no running request; returns whether there was one.

        Args:
            others: Number of idle connections that are not in `idle`.
        """
        return self._end(self.idle if len(self.idle) + others > self.spare else self.waiting)

    def evict(self) -> bool:
        """End any connection without a running request, to free a descriptor; returns whether there was one."""
        now = time.monotonic()
        old = (one for one, spared_s in islice(self.idle.items(), _AT_ONCE) if spared_s is None or spared_s <= now)
        return self._end(self.idle, list(old)) or self._end(self.waiting)

    def _end(self, some: dict[Connection, Any], of: Sequence[Connection] | None = None) -> bool:
        for longest in _without_news(list(islice(some, _AT_ONCE)) if of is None else of):
            del some[longest]
            if longest in self.open:
                self._ended.add(longest)
            longest.abort()
            return True
        return False

    async def end(self, grace_s: float, cut_s: float) -> int:
        """End all connections.

        Args:
            grace_s: Seconds that connections with a request may take.
            cut_s: Seconds that their requests may take to end after they are cut.

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
            pass  # the caller handles the remaining ones


def _without_news(connections: Sequence[Connection]) -> Iterator[Connection]:
    """The connections without bytes that were not parsed."""
    for one in connections:
        if one.has_unparsed:
            continue
        descriptor = one.fileno()
        poll = select.poll()
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
        if not poll.poll(0):
            yield one
