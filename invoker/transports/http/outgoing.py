"""`Outgoing`: the long messages that a socket sends, counted until the peer has taken them.

Messages wait in order, and are split into frames as the peer takes them. A large message that needs only one frame is
*handed* to the transport, which reports when the peer has taken it. The bytes of both count in the budget of the
process.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from invoker.core.budget import STEP_BYTES, ProcessBudget, Unread
from invoker.core.http import LongMessage
from invoker.errors import InvocationError
from invoker.execution.bodies.runner import later
from invoker.transports.http.frames import fragments

log = logging.getLogger(__name__)


class Outgoing:
    """The messages of one connection; false when no message waits.

    Args:
        memory: The memory of the process.
        drop: Ends the connection when memory runs out and this connection holds the most bytes; called on the loop.
    """

    __slots__ = ("_drop", "_handed", "_loop", "_memory", "_queue", "_unread", "_waiting")

    def __init__(self, memory: ProcessBudget, drop: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._memory = memory
        self._drop = drop
        self._queue: deque[tuple[Iterator[bytes], int]] = deque()
        self._waiting = self._handed = 0
        self._unread: Unread | None = None

    def __bool__(self) -> bool:
        return bool(self._queue)

    def put(self, frame: str | bytes | LongMessage) -> None:
        """Append a message to the waiting ones."""
        size = frame.size if isinstance(frame, LongMessage) else len(frame)
        self._queue.append((fragments(frame), size))
        self._waiting += size
        self._count()

    def hand(self, size: int) -> None:
        """Count a message of this size that was given to the transport at once."""
        if size > STEP_BYTES:
            self._handed += size
            self._count()

    def next(self) -> bytes | None:
        """The next frame of the waiting messages; None when no message waits."""
        while self._queue:
            frames, size = self._queue[0]
            if (frame := next(frames, None)) is not None:
                return frame
            self._queue.popleft()
            self._waiting -= size
            self._count()
        return None

    def taken(self) -> None:
        """Note that the peer has taken most of the transport's bytes, or that the connection is lost."""
        if self._handed:
            self._handed = 0
            self._count()

    def part(self) -> None:
        """Note that the conversation is over; it counts as running until the peer has taken all its messages."""
        if self._unread is not None and self._waiting + self._handed:
            self._unread.part()

    def clear(self) -> None:
        """Drop the waiting messages, which will not be sent."""
        self._queue.clear()
        self._waiting = 0
        self._count()

    def _end(self, error: InvocationError) -> None:
        log.info("a connection is ended, because its peer reads nothing", extra={"detail": str(error)})
        self._drop()

    def _count(self) -> None:
        held = self._waiting + self._handed
        if self._unread is None:
            if held <= STEP_BYTES:
                return
            self._unread = Unread(self._memory)
        if held:
            self._unread.hold(held, partial(later, self._loop, self._end))
        else:
            self._unread.take()
