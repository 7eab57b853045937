"""Some of the named functions, written a second time: async, bare, without the invoker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.faulty import Peer


class Named(NamedTuple):
    """A body with its arity."""

    body: Callable[..., Any]
    inputs: int = 1
    outputs: int = 1


@contextmanager
def marked(peer: Peer, name: str) -> Iterator[None]:
    """Count how a body ended."""
    peer.marks[f"{name}.calls"] += 1
    try:
        yield
    except BaseException:
        peer.marks[f"{name}.failed"] += 1
        raise
    else:
        peer.marks[f"{name}.completed"] += 1
    finally:
        peer.marks[f"{name}.closed"] += 1


def mapped(name: str, function: Callable[[Peer, Any], Any]) -> Named:
    """A request/reply function."""

    async def body(peer: Peer, values: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for value in values:
            peer.marks[f"{name}.calls"] += 1
            yield function(peer, value)

    return Named(body)


def fail(peer: Peer, wanted: dict[str, str]) -> Any:
    """Raise."""
    raise ValueError(wanted["text"])


async def total(peer: Peer, numbers: AsyncIterator[int]) -> AsyncIterator[int]:
    """The sum at the end."""
    with marked(peer, "total"):
        values = peer.memory if peer.has("leaks across calls") else []
        async for number in numbers:
            values.append(number)
        result = sum(values)
    yield result


async def pairs(peer: Peer, left: AsyncIterator[Any], right: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Zipped."""
    async for value in left:
        yield [value, await anext(right)]


async def drain_second_first(peer: Peer, first: AsyncIterator[Any], second: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Input 1, then input 0."""
    async for value in second:
        yield value
    async for value in first:
        yield value


async def greeting(peer: Peer, values: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Hello, then echo."""
    yield "hello"
    async for value in values:
        yield value


async def early(peer: Peer, values: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Two values."""
    for _ in range(2):
        yield await anext(values)


async def boom(peer: Peer) -> AsyncIterator[int]:
    """Three values and an error."""
    for number in (1, 2, 3):
        yield number
    raise ValueError("boom")


async def source(peer: Peer) -> AsyncIterator[int]:
    """Three values."""
    for number in (1, 2, 3):
        yield number


async def emit(peer: Peer, counts: AsyncIterator[int]) -> AsyncIterator[int]:
    """As many values as the first one says, or no end."""
    with marked(peer, "emit"):
        wanted, number = await anext(counts), 0
        while number != wanted:
            peer.marks["emit.values"] += 1
            yield number
            number += 1


async def ticker(peer: Peer) -> AsyncIterator[str]:
    """No end."""
    with marked(peer, "ticker"):
        number = 0
        while True:
            peer.marks["ticker.values"] += 1
            yield f"{number:01024d}"
            number += 1


def two_outputs(peer: Peer, plans: AsyncIterator[list[int]]) -> tuple[AsyncIterator[int], ...]:
    """As planned."""
    plan: list[int] = []
    reading = asyncio.Lock()

    async def planned(index: int) -> AsyncIterator[int]:
        async with reading:
            if not plan:
                plan.extend(await anext(plans))
        with marked(peer, "two_outputs"):
            number = 0
            while number != plan[index]:
                yield number
                number += 1

    return planned(0), planned(1)


FUNCTIONS: dict[str, Named] = {
    "marks": mapped("marks", lambda peer, key: peer.marks[key]),
    "square": mapped("square", lambda peer, x: x * x),
    "echo": mapped("echo", lambda peer, value: value),
    "fail": mapped("fail", fail),
    "total": Named(total),
    "pairs": Named(pairs, inputs=2),
    "drain_second_first": Named(drain_second_first, inputs=2),
    "greeting": Named(greeting),
    "early": Named(early),
    "boom": Named(boom, inputs=0),
    "source": Named(source, inputs=0),
    "emit": Named(emit),
    "ticker": Named(ticker, inputs=0),
    "two_outputs": Named(two_outputs, outputs=2),
}
