"""What the victims of `tests.attack.turns` serve: functions that look at nothing, and how long the loop was held."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from invoker import function

_PAUSE_S: Final = 0.001
_DUMP_S: Final = float(os.environ.get("INVOKER_ATTACK_DUMP_S", "0"))
"""If the loop is held for so long, the stacks of all threads are written to stderr."""


@function
def kind(value: Any) -> str:
    """What came, without a look inside."""
    return type(value).__name__


@function
async def akind(value: Any) -> str:
    """The same on the event loop."""
    return type(value).__name__


@function
def kinds(values: Iterator[Any]) -> Iterator[str]:
    """The same of each value of a stream."""
    for value in values:
        yield type(value).__name__


@function
async def akinds(values: AsyncIterator[Any]) -> AsyncIterator[str]:
    """The same on the event loop."""
    async for value in values:
        yield type(value).__name__


@function
def sink(values: Iterator[Any]) -> int:
    """How many came; it gives nothing meanwhile."""
    return sum(1 for _ in values)


@function
async def asink(values: AsyncIterator[Any]) -> int:
    """The same on the event loop, where it never waits for anything but its input."""
    count = 0
    async for _ in values:
        count += 1
    return count


@function
def many(*values: Any) -> int:
    """How many came."""
    return len(values)


@function
async def amany(*values: Any) -> int:
    """The same on the event loop."""
    return len(values)


@dataclass
class _Watch:
    """What the task that watches the loop has seen since it was asked last."""

    held_s: float = 0.0
    cpu_s: float = 0.0
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Be late by as much as the loop is held, and remember the longest time."""
        before_s, cpu_s = time.monotonic(), time.process_time()
        while True:
            if _DUMP_S:
                faulthandler.dump_traceback_later(_DUMP_S)
            await asyncio.sleep(_PAUSE_S)
            now_s, used_s = time.monotonic(), time.process_time()
            self.held_s = max(self.held_s, now_s - before_s - _PAUSE_S)
            self.cpu_s = max(self.cpu_s, used_s - cpu_s)
            before_s, cpu_s = now_s, used_s


_watch = _Watch()


@function
async def longest() -> dict[str, float]:
    """The longest time between two turns of the loop since the last call, and the process's own share of it."""
    if _watch.task is None:
        _watch.task = asyncio.create_task(_watch.run())
    seen = {"held_s": _watch.held_s, "cpu_s": _watch.cpu_s}
    _watch.held_s = _watch.cpu_s = 0.0
    return seen
