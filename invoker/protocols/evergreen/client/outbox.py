"""`Outbox`: the messages that a session still has to send, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

HIGH_BYTES = 1 << 20
"""If more bytes are unsent, streams into nodes wait; complete values do not, since they are in memory anyway."""

JOIN_BYTES = 1 << 16
"""Small messages are joined up to this size; the concatenated bytes are one message with the fragments of all."""


class Outbox:
    """A queue of serialised SessionMessages for the task that sends them.

    Args:
        on_close: Called when sending has ended.
    """

    def __init__(self, on_close: Callable[[], None]) -> None:
        self._on_close = on_close
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._is_ended = False
        self.is_closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()

    def put(self, message: bytes) -> None:
        """Add a message; after the end of the call it is dropped."""
        if not self.is_closed:
            self._messages.append(message)
            self._bytes += len(message)
            self._filled.set()

    async def room(self) -> None:
        """Wait while too many bytes are unsent; returns at once after sending has ended."""
        while self._bytes >= HIGH_BYTES and not self.is_closed:
            self._room.clear()
            await self._room.wait()

    @property
    def is_full(self) -> bool:
        """Whether so many bytes are unsent that `room` would wait."""
        return self._bytes >= HIGH_BYTES and not self.is_closed

    def end(self) -> None:
        """Let `feed` end after the messages that were added."""
        self._is_ended = True
        self._filled.set()

    def close(self) -> None:
        """Drop the unsent messages, and wake all waiting tasks."""
        self.is_closed = True
        self._messages.clear()
        self._bytes = 0
        self._room.set()
        self._on_close()

    async def feed(self) -> AsyncGenerator[bytes, None]:
        """Iterate over the messages until `end` is called."""
        try:
            while self._messages or not self._is_ended:
                if self._messages:
                    yield self._joined()
                else:
                    self._filled.clear()
                    await self._filled.wait()
        finally:
            self.close()

    def _joined(self) -> bytes:
        first = self._messages.popleft()
        size = len(first)
        found = [first]
        while self._messages and size + len(self._messages[0]) <= JOIN_BYTES:
            found.append(self._messages.popleft())
            size += len(found[-1])
        self._bytes -= size
        self._room.set()
        return b"".join(found)
