"""The same on the loop, beside those that are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from invoker import function
from tests.e2e.pressed_functions import fast, slow

__all__ = ["fast", "fast_on_loop", "slow", "slow_on_loop"]


@function
async def slow_on_loop(xs: AsyncIterator[bytes]) -> AsyncIterator[int]:
    """Takes one item a second."""
    async for x in xs:
        yield len(x)
        await asyncio.sleep(1)


@function
async def fast_on_loop() -> AsyncIterator[bytes]:
    """Gives without end."""
    while True:
        yield bytes(16_000)
