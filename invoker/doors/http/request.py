"""`Request`: one request of HTTP/1.1. Its connection brings the body and learns how much of it is wanted."""

from __future__ import annotations

import asyncio
from typing import Protocol

from invoker.core.budget import ProcessBudget
from invoker.doors.http.exchange import Exchange, HttpSettings
from invoker.doors.http.heads import Head

__all__ = ["HIGH_BYTES", "Bringer", "Request"]

HIGH_BYTES = 64 * 1024
"""So many bytes are read ahead of who wants them."""


class Bringer(Protocol):
    """The connection of a request."""

    def ask(self) -> None:
        """Somebody waits for the body."""


class Request(Exchange):
    """One request.

    Args:
        head: Of it.
        bringer: Brings its body.
        settings: Limits.
        memory: Counts the body.

    Attributes:
        meaning: Its head, as the connection understands it.
        is_whole: Whether all of the body has come.
        task: That answers it.
        unread: Bytes of the body that nobody has asked for yet.
    """

    def __init__(self, head: Head, bringer: Bringer, settings: HttpSettings, memory: ProcessBudget) -> None:
        super().__init__(head.request, settings, memory)
        self.meaning = head
        self.is_whole = False
        self.task: asyncio.Task[None] | None = None
        self.unread = 0
        self._bringer = bringer
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """More of the body has come."""
        if data:
            self._parts.append(data)
            self.unread += len(data)
        self.is_whole = is_last
        self._wake()

    def leave(self) -> None:
        """The client has left: whoever reads the body is told, and everybody else is cancelled (R-154, G-013)."""
        self.is_gone = True
        if self._waiter is not None:
            self._wake()
        elif self.task is not None:
            self.task.cancel()

    async def _next(self) -> bytes:
        while not (self._parts or self.is_whole or self.is_gone):
            self._begin_timing()
            self._bringer.ask()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        parts, self._parts = self._parts, []
        self.unread = 0
        self._is_complete = self.is_whole
        if not self._is_complete:
            self._bringer.ask()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
