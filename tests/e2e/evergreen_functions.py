"""Functions for the tests of the Evergreen client against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

from invoker import Context, Message, function


@function
async def shout(words: AsyncIterator[str]) -> AsyncIterator[str]:
    """Each piece in upper case, as it comes."""
    async for word in words:
        yield word.upper()


@function
def numbers(n: int) -> Iterator[dict[str, int]]:
    """Objects, one after the other."""
    for number in range(n):
        yield {"n": number}


class Both(NamedTuple):
    """Two outputs."""

    even: Iterator[int]
    odd: Iterator[int]


@function
def halves(xs: Iterator[int]) -> Both:
    """Even and odd numbers."""
    seen = list(xs)
    return Both(iter([x for x in seen if x % 2 == 0]), iter([x for x in seen if x % 2]))


@function
def broken(n: int) -> Iterator[str]:
    """Some text, then an error."""
    yield from (str(number) for number in range(n))
    raise ValueError("boom")


@function
async def forever(n: int) -> AsyncIterator[str]:
    """Text without an end."""
    while True:
        yield "x" * n
        await asyncio.sleep(0)


@function
def about(leaves: Iterator[Message[Any]], ctx: Context) -> Iterator[dict[str, Any]]:
    """What the function knows of each leaf, and of its config."""
    for leaf in leaves:
        payload = leaf.payload if not isinstance(leaf.payload, bytes) else len(leaf.payload)
        yield {"payload": payload, "type": leaf.media_type, "headers": dict(leaf.headers), "config": ctx.config(dict)}
