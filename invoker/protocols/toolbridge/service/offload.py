"""`AsideThreads`: a few threads that decode and check large arguments, so that the loop continues meanwhile.

A value of a few megabytes may be a million objects, which take a second to make. A thread that makes them lets others
run every few milliseconds. The threads are few, so many large requests wait for them, but other requests do not; they
are made with the first large request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

_THREADS: Final = 2


class AsideThreads:
    """The `Aside` of `HostSessions`: two threads that read the arguments of large requests."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="invoker-aside")

    def is_due(self) -> bool:
        """Whether this is the thread of a loop, for which other work waits."""
        return asyncio._get_running_loop() is not None  # noqa: SLF001 - asks what get_running_loop answers by raising

    async def run(self, work: Callable[[], T]) -> T:
        """Do some work in one of the threads; work that has not begun when this is cancelled is never done."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Let the threads end; waiting work is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
