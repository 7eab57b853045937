"""What the invoker serves to action-engine clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

from invoker import Context, Status, StatusError, function


@function
def upper(x: str) -> str:
    """In capitals."""
    return x.upper()


@function
def concat(a: str, b: str) -> str:
    """The two, joined."""
    return a + b


@function
def echo(x: Iterator[str]) -> Iterator[str]:
    """Each item as it comes."""
    yield from x


@function
async def count(x: AsyncIterator[str]) -> AsyncIterator[str]:
    """The numbers below the first item."""
    async for one in x:
        for number in range(int(one)):
            await asyncio.sleep(0)
            yield str(number)
        return


@function
def fail(x: Iterator[str]) -> Iterator[str]:
    """Raise after the first item."""
    for one in x:
        yield one
        raise ValueError(f"cannot go on after {one}")


@function
def refuse(x: str) -> str:
    """Choose a status."""
    raise StatusError(Status.PERMISSION_DENIED, f"{x} may not")


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


@function
def split(numbers: Iterator[int]) -> Split:
    """Even numbers on one output, odd ones on the other."""
    kept = list(numbers)
    return Split((one for one in kept if one % 2 == 0), (one for one in kept if one % 2))


@function
def describe(value: dict[str, Any]) -> dict[str, Any]:
    """The names in an object."""
    return {"names": sorted(value)}


@function
def greet(name: str, context: Context, greeting: str = "Hello") -> str:
    """With what the headers of the action say."""
    return f"{greeting}, {context.metadata.get('title', '')}{name}"
