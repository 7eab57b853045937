"""A catalogue of sync functions only, which a server may serve in threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from invoker import function


@function
def reply(value: str) -> str:
    """The text itself."""
    return value


@function
def stream(values: Iterator[str]) -> Iterator[str]:
    """The texts that came."""
    yield from values


@function(safe=True)
def ticks(to: int) -> Iterator[int]:
    """The numbers below ``to``."""
    yield from range(to)


@function
def same(x: NDArray[Any]) -> NDArray[Any]:
    """The tensor that came."""
    return x
