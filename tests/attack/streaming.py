"""What the victims of `tests.attack.streams` serve: functions that stream, sync and async; some never end."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from invoker import Message, function
from invoker.execution.bodies import pool

pool._IDLE_S = 1.0  # whoever waits for its threads to leave does not wait for ten seconds

COMMITS: list[int] = []
RUNNING: set[object] = set()


@function(safe=True)
async def endless() -> AsyncIterator[str]:
    """Gives as much as anybody takes."""
    while True:
        yield "x" * 1000


@function(safe=True)
def endless_sync() -> Iterator[str]:
    """The same in a thread."""
    while True:
        yield "x" * 1000


@function
async def huge() -> AsyncIterator[bytes]:
    """Gives items of 20 MiB."""
    while True:
        yield bytes(20 << 20)


@function
async def echo(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    """What comes."""
    async for x in xs:
        yield x


@function
async def slow(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    """Takes a second for each item."""
    async for _ in xs:
        await asyncio.sleep(1)
        yield "x"


@function
def slow_sync(xs: Iterator[str]) -> Iterator[str]:
    """The same in a thread."""
    for _ in xs:
        time.sleep(0.2)
        yield "x"


@function
async def slow_pieces(xs: AsyncIterator[bytes]) -> AsyncIterator[int]:
    """Takes a second for each piece."""
    async for x in xs:
        await asyncio.sleep(1)
        yield len(x)


@function
async def mute(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    """Reads nothing, and waits for ever behind its first item."""
    yield "begun"
    await asyncio.Event().wait()


@function
async def first(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    """Gives its first item back, and is done."""
    async for x in xs:
        yield x
        return


@function
async def total(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    """Commits a sum, if its input ends as it should."""
    me = object()
    RUNNING.add(me)
    try:
        yield 0
        COMMITS.append(sum([x async for x in xs]))
        yield COMMITS[-1]
    finally:
        RUNNING.discard(me)


@function
def total_sync(xs: Iterator[int]) -> Iterator[int]:
    """The same in a thread."""
    me = object()
    RUNNING.add(me)
    try:
        yield 0
        COMMITS.append(sum(xs))
        yield COMMITS[-1]
    finally:
        RUNNING.discard(me)


@function
async def pair(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
    """Reads its first input."""
    async for x in a:
        yield x


@function(safe=True)
async def page() -> Message[bytes]:
    """Gives what would be a page of this port, if a browser took it for one."""
    return Message(b"<script>alert(1)</script>", media_type="text/html")


@function(safe=True)
async def keyed(value: Any = 0, other: int = 0, third: str = "") -> Any:
    """Gives what it is given."""
    return (value, other, third)


def _place(coro: Any) -> str:
    """Where a task waits: the functions that wait for each other."""
    names: list[str] = []
    while coro is not None and len(names) < 20:
        names.append(getattr(coro, "__name__", type(coro).__name__))
        coro = getattr(coro, "cr_await", None) or getattr(coro, "ag_await", None)
    return " ".join(names)


@function
async def state(_: int) -> dict[str, Any]:
    """What the process holds."""
    gc.collect()
    return {
        "commits": COMMITS,
        "running": len(RUNNING),
        "tasks": len(asyncio.all_tasks()),
        "names": sorted(f"{one.get_name()} in {_place(one.get_coro())}" for one in asyncio.all_tasks())[:60],
        "threads": threading.active_count(),
    }
