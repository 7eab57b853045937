"""The wire of a conversation inside the process: a slow reader makes the function wait, and its end ends the call."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from invoker import Context
from invoker.execution.nested.inside import Inside
from invoker.testing import Harness
from tests.execution.nested.world import World


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_waits_while_its_values_are_not_taken(is_async: bool) -> None:
    """It is at most a buffer ahead of its caller, and is closed when the caller closes the iterator."""
    given: list[int] = []
    closed = asyncio.Event()

    def sync_source() -> Iterator[int]:
        try:
            for one in range(10_000):
                given.append(one)
                yield one
        finally:
            closed.set()

    async def async_source() -> AsyncIterator[int]:
        try:
            for one in range(10_000):
                given.append(one)
                yield one
        finally:
            closed.set()

    async def caller(x: int, ctx: Context) -> int:
        async with contextlib.aclosing(ctx.stream("source")) as values:
            async for value in values:
                if value == 3:
                    break
            for _ in range(200):
                await asyncio.sleep(0)
            ahead = len(given)
        await closed.wait()
        return ahead

    source = async_source if is_async else sync_source
    (ahead,) = Harness(caller, calls={"source": source}).run([1])
    assert ahead < 60
    assert len(given) < 80


async def test_a_conversation_that_is_over_needs_no_garbage_collector(world: Callable[..., World]) -> None:
    """Nothing of it lives on in a circle."""

    async def leaf(x: int) -> int:
        return x

    async def caller(x: int, ctx: Context) -> int:
        return sum([await ctx.call("leaf", one) for one in range(x)])

    made = world(leaf, caller)
    gc.collect()
    gc.disable()
    try:
        assert await made.run("caller", 10) == [45]
        assert not [one for one in gc.get_objects() if isinstance(one, Inside)]
    finally:
        gc.enable()
