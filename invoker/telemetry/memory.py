"""`Trimmer`: returns freed memory to the system after a peak.

The C library keeps freed memory between blocks that are still in use; after a peak that may be most of a gigabyte.
`malloc_trim` returns it to the system. It is called in a thread, at most every half second, and only when the process
holds much less than shortly before, or when many threads of functions have ended their work, whose small values are not
counted. (A lower threshold of the C library itself would cause page faults for each large frame.)
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
from collections.abc import Callable

from invoker.core.budget import ProcessBudget
from invoker.errors import Overloaded
from invoker.execution.bodies.pool import Threads, off_loop

log = logging.getLogger(__name__)

MUCH_BYTES = 64 * 1024 * 1024
"""The least bytes by which the held bytes must have fallen; less memory is soon used again."""

_LOOK_S = 0.5
_ARENA_MAX = -8  # from malloc.h
_ARENAS = 2
_TIMES = 16
"""How many times memory is trimmed after a peak, since the rest of refused bodies is read and freed seconds later."""

_MANY_THREADS = 32
_TIMES_THREADS = 2


def malloc_trim() -> bool:
    """Let the C library return memory to the system; returns whether it did. False if it has no such function."""
    with contextlib.suppress(AttributeError, OSError):
        return bool(ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0)))
    return False


def share_arenas() -> None:
    """Let all threads allocate from two arenas of the C library, unless the environment sets their number.

    `malloc_trim` returns free memory in the middle of every arena; but it returns free memory at the end, which may be
    16 MiB, only for the first arena. By default there are eight arenas for each processor. This must be called before
    threads begin.
    """
    if "MALLOC_ARENA_MAX" in os.environ or "arena_max" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS)


class Trimmer:
    """Checks a budget every half second, on the loop.

    Args:
        budget: The budget of the process.
        threads: The pool from which a thread for calling the C library comes.
        trim: Calls the C library.
        look_s: Seconds between two checks.
    """

    def __init__(
        self,
        budget: ProcessBudget,
        threads: Threads,
        *,
        trim: Callable[[], bool] = malloc_trim,
        look_s: float = _LOOK_S,
    ) -> None:
        self._budget = budget
        self._threads = threads
        self._trim = trim
        self._look_s = look_s
        self._task: asyncio.Task[None] | None = None
        self._most_busy = self._was_busy = 0

    def start(self) -> None:
        """Begin to look at the budget."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="trim")

    def stop(self) -> None:
        """Stop looking at the budget; memory is trimmed no more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        left = 0
        while True:
            await asyncio.sleep(self._look_s)
            if self._budget.has_fallen(MUCH_BYTES):
                left = _TIMES
            if self._have_left():
                left = max(left, _TIMES_THREADS)
            if left:
                left -= 1
                with contextlib.suppress(Overloaded):  # no thread is free; the next check tries again
                    await off_loop(self._threads, self._trim)

    def _have_left(self) -> bool:
        """Whether many threads were busy earlier, and less than half of these at the last two checks."""
        busy, before = self._threads.busy, self._was_busy
        self._was_busy = busy
        self._most_busy = max(self._most_busy, busy)
        have_left = self._most_busy >= _MANY_THREADS and 2 * max(busy, before) < self._most_busy
        if have_left:
            self._most_busy = busy
        return have_left
