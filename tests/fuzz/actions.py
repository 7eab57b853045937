"""Actions some of which are async, so that all calls run on the loop; for the fuzz."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from invoker import function
from tests.fuzz.sync_actions import add, both, dozes, items, mark, state, upper

__all__ = ["add", "both", "dozes", "endless", "fails", "gather", "ignores", "items", "relay", "state", "upper"]


@function
async def relay(x: AsyncIterator[str]) -> AsyncIterator[str]:
    """Text as it comes."""
    async for one in x:
        yield one


@function
async def fails(x: AsyncIterator[str]) -> AsyncIterator[str]:
    """One value, then an error."""
    yield "one"
    raise ValueError("on purpose")


@function
async def endless() -> AsyncIterator[str]:
    """Never ends."""
    while True:
        yield "x" * 10_000
        await asyncio.sleep(0)


@function
async def gather(x: AsyncIterator[str]) -> str:
    """Counts a normal end of its input, which only a half-close may be."""
    async for _ in x:
        pass
    mark()
    return "all"


@function
async def ignores(x: AsyncIterator[str]) -> AsyncIterator[str]:
    """Will not be cancelled, the first time."""
    try:
        async for one in x:
            yield one
        await asyncio.sleep(1)
    except (Exception, asyncio.CancelledError):
        await asyncio.sleep(0.1)
