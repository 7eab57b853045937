"""`MailBox`: where the coordinator leaves notices for one session, which awaits them on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from invoker.protocols.federated.messages import Notice


class MailBox:
    """The notices of one session, in order; see `invoker.protocols.federated.messages.Mailbox`.

    There is no limit on their number: the coordinator gives a session a few notices in its whole life.
    """

    __slots__ = ("_notices", "_waiter")

    def __init__(self) -> None:
        self._notices: list[Notice] | None = None
        self._waiter: asyncio.Future[Sequence[Notice]] | None = None

    def put(self, notice: Notice) -> None:
        """Add a notice; the session gets it in a later turn of the loop."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result((notice,))
        elif self._notices is None:
            self._notices = [notice]
        else:
            self._notices.append(notice)

    def next(self) -> asyncio.Future[Sequence[Notice]]:
        """Wait for notices, and take all of them; a future costs a tenth of a waiting task."""
        waiter: asyncio.Future[Sequence[Notice]] = asyncio.get_running_loop().create_future()
        if self._notices is None:
            self._waiter = waiter
        else:
            waiter.set_result(self._notices)
            self._notices = None
        return waiter
