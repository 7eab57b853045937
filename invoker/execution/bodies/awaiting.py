"""`Awaiting`: runs what a sync function returned to be awaited, on the loop, while the function's thread blocks."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable
from typing import Any

from invoker.errors import Cancelled, InputCancelled
from invoker.errors.wording import cannot_wait

__all__ = ["Awaiting"]


class Awaiting:
    """The awaitables for which the threads of one invocation wait.

    Args:
        loop: Where it runs; None before the process has one.
    """

    __slots__ = ("_is_cancelled", "_loop", "_running")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._is_cancelled = False

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable`` (R-034).

        Raises:
            InputCancelled: `cancel` was called.
        """

        async def run() -> Any:
            return await awaitable

        if self._loop is None:
            raise cannot_wait(awaitable)
        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        self._running.add(future)
        if self._is_cancelled:
            future.cancel()  # Add, then check; `cancel` does the reverse, so one of them sees it.
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            if not self._is_cancelled:
                raise
            raise InputCancelled(Cancelled("the peer cancelled, or is gone")) from None
        finally:
            self._running.discard(future)

    def cancel(self) -> None:
        """Cancel everything that a thread waits for now or later."""
        self._is_cancelled = True
        for future in list(self._running):
            future.cancel()
