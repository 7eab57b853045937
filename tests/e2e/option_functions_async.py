"""The twins of some of `tests.e2e.option_functions` on the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator

from invoker import function


@function
async def greet(name: str = "world") -> str:
    """All of it is an option."""
    return f"hello {name}"


@function
async def scale(x: float, factor: float = 2.0, *, shift: float = 0.0) -> float:
    """Mapped over ``x``."""
    return x * factor + shift


@function
async def join(words: AsyncIterator[str], sep: str = ",", *, most: int = 100) -> AsyncIterator[str]:
    """Greets before it reads."""
    yield f"begin {sep}"
    found = [word async for word in words]
    yield sep.join(found[:most])


@function
async def gen(prompt: str) -> AsyncIterator[str]:
    """One value makes a stream."""
    for word in prompt.split():
        yield word


@function
async def topk(items: AsyncIterator[str], k: int, mark: str = "") -> AsyncIterator[str]:
    """A stream, a value, an option."""
    async for item in items:
        if k <= 0:
            return
        k -= 1
        yield item + mark


@function
async def spell(first: str = "a", second: str = "b", third: str = "c") -> AsyncIterator[str]:
    """A source of which all is an option."""
    yield first + second + third
