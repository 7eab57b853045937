"""`MailBox`: where the desk leaves notices for one session, which awaits them on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from invoker.protocols.federated.words import Notice

__all__ = ["MailBox"]


class MailBox:
    """The notices of one session, in order; see `invoker.protocols.federated.words.Mailbox`.

    Nobody waits when there are many: the desk gives a session a few notices in its whole life.
    """

    __slots__ = ("_notices", "_waiter")

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, notice: Notice) -> None:
        """Add a notice; the session is told in a later turn."""
        self._notices.append(notice)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> Sequence[Notice]:
        """Wait for notices, and take all that are there."""
        if not self._notices:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        taken, self._notices = self._notices, []
        return taken
