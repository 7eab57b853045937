"""Functions of every shape, for the tests of what callers are told of them."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from invoker import Field, Message, function

__version__ = "1.2.3"


class Color(enum.Enum):
    """What one sees."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place."""

    x: int
    y: float = 0.0


@dataclass
class Tree:
    """Holds itself."""

    name: str
    children: list[Tree] = field(default_factory=list)


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


@function(safe=True)
def square(x: Annotated[int, Field(ge=-1000, le=1000)]) -> int:
    """Square a number.

    The result is exact.

    Args:
        x: What is squared.

    Returns:
        The square.

    >>> square(3)
    9
    """
    return x * x


@function
def swap(
    pairs: list[tuple[int, str]],
    more: list = [],  # noqa: B006
) -> list[tuple[str, int]]:
    """Turn pairs round."""
    return [(name, number) for number, name in pairs]


@function(safe=True)
def count(n: Annotated[int, Field(ge=0, le=10)] = 3) -> Iterator[int]:
    """Count to a number."""
    yield from range(n)


@function
async def echo(words: AsyncIterator[str], prefix: str = "", color: Color = Color.RED) -> AsyncIterator[str]:
    """Give words back.

    Args:
        words: Any.
        prefix: Stands before each.
    """
    async for word in words:
        yield f"{prefix}{word}"


@function(examples=("repeat(['a'], [2])",))
def repeat(words: Iterator[str], counts: Iterator[int], sep: str = " ") -> Iterator[str]:
    """Repeat each word as often as its count says."""
    for word, times in zip(words, counts, strict=False):
        yield sep.join([word] * max(0, min(times, 9)))


@function
def split(xs: Iterator[int]) -> Split:
    """Split numbers into even and odd ones."""
    given = list(xs)
    return Split(iter([x for x in given if x % 2 == 0]), iter([x for x in given if x % 2]))


@function
def store(xs: Iterator[int]) -> None:
    """Take numbers, and give nothing."""
    for _ in xs:
        pass


@function
def move(point: Point, by: Literal[1, 2] = 1) -> Point:
    """Move a place."""
    return Point(point.x + by, point.y)


@function
def prune(tree: Tree) -> Tree | None:
    """Give the first child."""
    return next(iter(tree.children), None)


@function
def gray(image: bytes) -> bytes:
    """Give bytes back."""
    return image


@function(input_types="image/png", output_types="image/png")
def paint(image: bytes) -> bytes:
    """Give a picture back."""
    return image


@function
def upload(name: str, image: bytes, points: list[Point] = []) -> dict[str, int]:  # noqa: B006 - nobody changes it
    """Tell how large a file is."""
    return {name: len(image), "points": len(points)}


@function
def norm(rows: Annotated[NDArray[np.float64], ("n", 2)]) -> float:
    """Sum what is in rows."""
    return float(rows.sum())


@function(safe=True)
def total(xs: list[int], when: dt.date | None = None, tags: list[str] = [], at: Point | None = None) -> str:  # noqa: B006
    """Describe what was given."""
    return f"{sum(xs)} {when} {len(tags)} {at}"


@function
def named(a: int, **more: float) -> dict[str, float]:
    """Take further numbers by any name."""
    return {"a": float(a), **more}


@function
def many(*xs: int) -> int:
    """Add any number of numbers."""
    return sum(xs)


@function
def anything(x: Any) -> Any:
    """Give it back."""
    return x


@function
def scale(values: dict[str, float], factor: float = 2.0) -> dict[str, float]:
    """Multiply each value."""
    return {name: value * factor for name, value in values.items()}


@function
def created(x: int) -> Message[str]:
    """Choose the status."""
    return Message(f"made {x}", headers={"X-Http-Status": "201"})


@function
def now() -> uuid.UUID:
    """Take nothing."""
    return uuid.UUID(int=7)


@function(name="größe {x}")
def odd_name(x: int) -> int:
    """Have a name that no path has as it is."""
    return x


@function
def metrics(x: int) -> int:
    """Have the name of a page."""
    return x
