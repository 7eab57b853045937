"""`Portal`: an event loop in a thread of its own, for clients without one; `on_loop`: runs a finalizer on its loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from invoker.connect.quiet import quieten

T = TypeVar("T")


class Portal:
    """An event loop in a daemon thread, and the methods that run code on it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        quieten(self._loop)
        self._thread = threading.Thread(target=self._serve, name="invoker-client", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether the loop is not closed yet, so that `run` works."""
        return not self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result; an interrupt cancels it."""
        if not self.is_open:
            work.close()
            raise RuntimeError("the client is closed")
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a sync client cannot be used by the async inputs of its own calls")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def soon(self, function: Callable[[], None]) -> None:
        """Run a function on the loop, without waiting for it."""
        if self.is_open:
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel the tasks that still run, and end the loop and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()


def on_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    """Do the work of a finalizer: at once if this is the loop's thread, otherwise in a later turn of the loop."""
    if loop.is_closed():
        return
    try:
        is_here = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_here = False
    if is_here:
        work()
    else:
        loop.call_soon_threadsafe(work)
