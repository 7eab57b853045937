"""`Awaiting`: runs the awaitable that a sync function returned, on the loop, while the function's thread blocks."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable
from typing import Any

from invoker.errors import Cancelled, InputCancelled
from invoker.errors.wording import cannot_wait


class Awaiting:
    """The awaitables for which the threads of one invocation wait.

    Args:
        loop: The loop on which they run; None before the process has one.
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
            future.cancel()  # `cancel` sets the flag, then reads `_running`, so no future is missed.
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            if not self._is_cancelled:
                raise
            raise InputCancelled(Cancelled()) from None
        finally:
            self._running.discard(future)

    def cancel(self) -> None:
        """Cancel all awaitables for which a thread waits, now or later."""
        self._is_cancelled = True
        for future in list(self._running):
            future.cancel()
