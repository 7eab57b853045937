"""`Trimmer`: gives memory back to the system after a flood.

The C library keeps freed memory between blocks that are still in use; after a flood that may be most of a gigabyte.
`malloc_trim` gives it back. It is given back only when the process holds much less than a moment ago, or many threads
of functions have ended their work, whose small values are not counted; in a thread, and at most every half a second: a
lower threshold for all blocks would cause page faults for each large frame.
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
"""The least bytes that the callers must have given up; less is soon used again."""

_LOOK_S = 0.5
_ARENA_MAX = -8  # from malloc.h
_ARENAS = 2
_TIMES = 16
"""How often it is asked for after a flood: what is read and thrown away of refused bodies is freed seconds later."""

_MANY_THREADS = 32
_TIMES_THREADS = 2


def malloc_trim() -> bool:
    """Ask the C library to give memory back; returns whether it did. False where it has no such function."""
    with contextlib.suppress(AttributeError, OSError):
        return bool(ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0)))
    return False


def share_arenas() -> None:
    """Let all threads allocate from two arenas of the C library, unless the environment sets their number.

    `malloc_trim` gives back free memory in the middle of every arena; but only for the first arena does it give back
    the free memory at the end, which may be 16 MiB. By default there are eight arenas for each processor. This must be
    called before threads begin.
    """
    if "MALLOC_ARENA_MAX" in os.environ or "arena_max" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS)


class Trimmer:
    """Looks at a budget every half a second, on the loop.

    Args:
        budget: The budget of the process.
        threads: Give a thread in which the C library is called.
        trim: Calls the C library.
        look_s: Time between two looks.
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
                with contextlib.suppress(Overloaded):  # no thread is free; the next look tries again
                    await off_loop(self._threads, self._trim)

    def _have_left(self) -> bool:
        """Whether, of many threads that were busy earlier, less than half were busy at the last two looks."""
        busy, before = self._threads.busy, self._was_busy
        self._was_busy = busy
        self._most_busy = max(self._most_busy, busy)
        have_left = self._most_busy >= _MANY_THREADS and 2 * max(busy, before) < self._most_busy
        if have_left:
            self._most_busy = busy
        return have_left
