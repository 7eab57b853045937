"""Runs functions in memory; shared by the tests of lifting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from invoker.author.lift import Function, lift
from invoker.author.reader import read
from invoker.context import Context


def lifted(fn: Any) -> Function:
    return lift(fn, read(fn))


async def stream(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value


async def run(fn: Any, *inputs: Iterable[Any], context: Context | None = None) -> list[list[Any]]:
    """Start a function, run it once over these inputs, and give the values of each output."""
    body = fn if isinstance(fn, Function) else lifted(fn)
    await body.start()
    context = context or Context("i1", body.spec.name)
    try:
        if not body.spec.is_async:
            return [list(output) for output in body.open([iter(one) for one in inputs], context)]
        outputs = await body.open_async([stream(one) for one in inputs], context)
        return [[value async for value in output] for output in outputs]
    finally:
        await body.stop()


def value(x: int) -> int:
    return x * 10


def generator(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield x * 10


async def async_value(x: int) -> int:
    await asyncio.sleep(0)
    return x * 10


async def async_generator(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x * 10
