"""A catalogue with only sync functions, which a server may run in threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from invoker import function


@function
def reply(value: str) -> str:
    """Return the text."""
    return value


@function
def stream(values: Iterator[str]) -> Iterator[str]:
    """Yield each text."""
    yield from values


@function(safe=True)
def ticks(to: int) -> Iterator[int]:
    """Yield the numbers below ``to``."""
    yield from range(to)


@function
def same(x: NDArray[Any]) -> NDArray[Any]:
    """Return the tensor."""
    return x
