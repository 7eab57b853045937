"""`MailBox`: a queue of the coordinator's notices for one session, which awaits them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from invoker.protocols.federated.messages import Notice


class MailBox:
    """The notices of one session, in order; see `invoker.protocols.federated.messages.Mailbox`.

    Their number needs no limit: a session gets only a few notices.
    """

    __slots__ = ("_notices", "_waiter")

    def __init__(self) -> None:
        self._notices: list[Notice] | None = None
        self._waiter: asyncio.Future[Sequence[Notice]] | None = None

    def put(self, notice: Notice) -> None:
        """Add a notice, which the session gets in a later turn of the event loop."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result((notice,))
        elif self._notices is None:
            self._notices = [notice]
        else:
            self._notices.append(notice)

    def next(self) -> asyncio.Future[Sequence[Notice]]:
        """Wait for notices, and remove all of them; returns a future, which costs a tenth of a waiting task."""
        waiter: asyncio.Future[Sequence[Notice]] = asyncio.get_running_loop().create_future()
        if self._notices is None:
            self._waiter = waiter
        else:
            waiter.set_result(self._notices)
            self._notices = None
        return waiter
