"""Functions with every kind of annotation, and names that are in each other's way."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import numpy as np
import pydantic
from numpy.typing import NDArray

from invoker import Context, Field, Headers, Message, Output, function

T = TypeVar("T")


class Colour(enum.Enum):
    """What it looks like."""

    RED = "red"
    DARK_GREEN = "green"


class Size(enum.IntEnum):
    SMALL = 7
    LARGE = 9


@dataclass
class Point:
    """A place.

    More of it.
    """

    x: int
    y: float = 2.5
    tags: list[str] = field(default_factory=list)


@dataclass
class Tree:
    label: str
    children: list[Tree] = field(default_factory=list)
    parent: Tree | None = None


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Options(TypedDict):
    depth: int
    name: NotRequired[str]


class Row(msgspec.Struct):
    id: int
    when: dt.datetime


class Model(pydantic.BaseModel):
    size: int = pydantic.Field(gt=0)
    parts: dict[str, Point] = {}


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class PlainRequest:
    """A class with the name of a message of ours."""

    value: int


@function
def scalars(i: int, f: float, s: str, b: bytes, t: bool) -> str:
    """All scalars.

    Args:
        i: How many.
        s: What.

    Returns:
        All of them, written.
    """
    return f"{i} {f} {s} {b!r} {t}"


@function
def plain(value: PlainRequest) -> int:
    return value.value


@function
def point(p: Point, colour: Colour, size: Size = Size.LARGE) -> Point:
    return Point(p.x + 1, p.y, [*p.tags, colour.name, size.name])


@function
def grow(tree: Tree) -> Tree:
    return Tree("root", [tree, Tree("leaf")])


@function
def pair(p: Pair) -> Pair:
    return Pair(p.left * 2, p.right + "!")


@function
def options(o: Options) -> Options:
    return {"depth": o["depth"] + 1} | ({"name": o["name"]} if "name" in o else {})


@function
def row(r: Row) -> Row:
    return Row(r.id, r.when + dt.timedelta(days=1))


@function
def model(m: Model) -> Model:
    return Model(size=m.size + 1, parts=m.parts)


@function
def box(b: Box[int]) -> Box[str]:
    return Box(str(b.content))


@function
def times(at: dt.datetime, took: dt.timedelta, day: dt.date, hour: dt.time) -> list[str]:
    return [at.isoformat(), str(took.total_seconds()), day.isoformat(), hour.isoformat()]


@function
def texts(u: uuid.UUID, d: decimal.Decimal) -> decimal.Decimal:
    return d + (u.int % 2)


@function
def lists(xs: list[int], rows: list[list[int]], names: set[str], pair: tuple[int, str]) -> tuple[int, ...]:
    return (*xs, *(sum(one) for one in rows), len(names), pair[0])


@function
def maps(counts: dict[str, int], points: dict[int, Point], anything: dict[str, Any]) -> dict[str, list[int]]:
    return {"counts": sorted(counts.values()), "points": [one.x for one in points.values()], "any": [len(anything)]}


@function
def union(value: int | str | Point | list[int] | None) -> int | str | Point | list[int] | None:
    return value


@function
def optional(x: int | None, y: str | None = "y", xs: list[int] | None = None) -> list[Any]:
    return [x, y, xs]


@function
def literal(mode: Literal["fast", "slow"], level: Literal[1, 2] = 1) -> str:
    return f"{mode}{level}"


@function
def anything(value: Any) -> Any:
    return value


@function
def unannotated(value, more=None):
    return [value, more]


@function
def array(a: NDArray[np.float32], b: np.ndarray) -> NDArray[np.float32]:
    return (a + b).astype(np.float32)


@function
def many(first: int, *rest: int, scale: int = 1) -> int:
    return (first + sum(rest)) * scale


@function
def named(a: int, **more: int) -> int:
    """Adds what has a name."""
    return a + sum(more.values())


@function
def nothing() -> str:
    return "nothing"


@function
def said(m: Message[str], ctx: Context, shout: bool = False) -> Message[str]:
    return Message(m.payload.upper() if shout else m.payload, headers={"X-Function": ctx.function})


@function
def heads(h: Headers) -> int:
    return len(h)


@function
def bounded(n: Annotated[int, Field(ge=1)]) -> int:
    return n


@function
def quiet(x: int) -> None:
    assert x


@function
def source(count: int = 3) -> Iterator[int]:
    yield from range(count)


@function
def spell(word: str) -> Iterator[str]:
    yield from word


@function
def total(numbers: Iterator[float]) -> float:
    return sum(numbers)


@function
def sink(points: Iterator[Point]) -> None:
    assert list(points)


@function
def mean(numbers: Iterator[int]) -> Iterator[float]:
    seen = 0
    for count, one in enumerate(numbers, 1):
        seen += one
        yield seen / count


@function
async def echo(values: AsyncIterator[str], prefix: str = ">") -> AsyncIterator[str]:
    async for one in values:
        yield prefix + one


@function
def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    for word, count in zip(words, counts, strict=True):
        for _ in range(count):
            yield word


@function
def top(items: Iterator[list[int]], k: int) -> Iterator[int]:
    yield from sorted(max(one) for one in items)[-k:]


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[list[int]]


@function
def split(xs: Iterator[int]) -> Split:
    numbers = list(xs)
    return Split((one for one in numbers if one % 2 == 0), ([one] for one in numbers if one % 2))


@function(outputs=("good", "bad"))
def tag(xs: Iterator[int]) -> Iterator[Output]:
    for one in xs:
        yield Output("good" if one > 0 else "bad", one)


@function(outputs=("low", "high"))
def bounds(xs: list[int]) -> tuple[int, int]:
    return min(xs), max(xs)


@function(name="strange-name.of it")
def strange(größe: int, fooBar: int, foo_bar: int) -> int:  # noqa: N803, PLC2401 - names that protobuf does not take
    return größe + fooBar * 10 + foo_bar * 100


@function(name="strange_name_of_it")
def clash(x: int) -> int:
    return x


@function(safe=True)
async def doze(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds
