"""Annotations of every kind that authors use, with values of them."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, TypeVar

import attrs
import msgspec
import numpy as np
import pydantic
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker import Field

T = TypeVar("T")
Some = TypeVar("Some", int, str)
UserId = NewType("UserId", int)


class Color(enum.Enum):
    """What one sees."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    """A place."""

    x: int
    y: float = 0.5


@dataclass
class Node:
    """Holds itself."""

    value: int
    children: list[Node] = field(default_factory=list)
    parent: Optional[Node] = None  # noqa: UP045 - as authors write it


@dataclass
class Box(Generic[T]):
    item: T
    color: Color = Color.RED


@attrs.define
class Size:
    width: Annotated[int, Field(ge=1, le=9)]
    name: str = "x"


class Shape(msgspec.Struct, rename="camel", tag=True):
    line_width: int
    points: tuple[Point, ...] = ()


class Circle(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    radius: Annotated[float, msgspec.Meta(gt=0)]


class Row(msgspec.Struct, array_like=True):
    a: int
    b: str = ""


class Keys(TypedDict):
    a: int
    b: NotRequired[list[str]]


class Pair(NamedTuple):
    a: int
    b: str = "x"


class Leaf(pydantic.BaseModel):
    """A leaf."""

    size: int = pydantic.Field(default=1, ge=0, alias="Size")


class Model(pydantic.BaseModel):
    leaf: Leaf
    names: list[str] = []
    when: dt.date | None = None
    more: dict[str, Model] = {}


@dataclass
class Mixed:
    """Kinds of other libraries, within one of ours."""

    model: Leaf
    data: bytes
    array: Annotated[NDArray[np.float64], (2,)]
    size: Size


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
POINTS = st.builds(Point, st.integers(), FLOATS)
NODES = st.recursive(
    st.builds(Node, st.integers()), lambda inner: st.builds(Node, st.integers(), st.lists(inner, max_size=2), inner)
)
SIZES = st.builds(Size, st.integers(1, 9), st.text())
LEAVES = st.builds(lambda size: Leaf(Size=size), st.integers(0, 9))
SHAPES = st.builds(Shape, st.integers(-(2**63), 2**63 - 1), st.lists(POINTS, max_size=2).map(tuple))
CIRCLES = st.builds(Circle, st.floats(0.1, 9))
TIMES = st.datetimes(timezones=st.just(dt.UTC))
ARRAYS = st.lists(FLOATS, min_size=2, max_size=2).map(np.array)

NAMES = st.lists(st.text(), max_size=2)
MODELS = st.builds(Model, leaf=LEAVES, names=NAMES, when=st.none() | st.dates(), more=st.just({}))

KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (list[Some], st.lists(st.integers(-300, 300) | st.text(max_size=3), max_size=3)),  # type: ignore[valid-type]  # as authors write it
    (int, st.integers()),
    (float, FLOATS),
    (str, st.text()),
    (bool, st.booleans()),
    (None, st.none()),
    (list[bytes], st.lists(st.binary())),
    (Optional[int], st.none() | st.integers()),  # noqa: UP045 - as authors write it
    (int | str | None, st.none() | st.integers() | st.text()),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),  # noqa: PYI061 - as authors write it
    (Color, st.sampled_from(Color)),
    (list[Level], st.lists(st.sampled_from(Level))),
    (Point, POINTS),
    (Node, NODES),
    (Box[int], st.builds(Box, st.integers(), st.sampled_from(Color))),
    (Box[Point], st.builds(Box, POINTS)),
    (Size, SIZES),
    (Shape, SHAPES),
    (Shape | Circle, SHAPES | CIRCLES),
    (Row, st.builds(Row, st.integers(-99, 99), st.text())),
    (Keys, st.fixed_dictionaries({"a": st.integers()}, optional={"b": st.lists(st.text())})),
    (Pair, st.builds(Pair, st.integers(), st.text())),
    (list[int], st.lists(st.integers())),
    (Sequence[Point], st.lists(POINTS, max_size=3)),
    (tuple[int, str], st.tuples(st.integers(), st.text())),
    (tuple[int, ...], st.lists(st.integers()).map(tuple)),
    (set[int], st.sets(st.integers())),
    (frozenset[str], st.frozensets(st.text())),
    (dict[str, list[int]], st.dictionaries(st.text(), st.lists(st.integers()))),
    (dict[int, bool], st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.booleans())),
    (Mapping[str, Point], st.dictionaries(st.text(), POINTS, max_size=2)),
    (list, st.lists(st.integers())),
    (dict, st.dictionaries(st.text(), st.booleans())),
    (dt.datetime, TIMES),
    (dt.date, st.dates()),
    (dt.time, st.times(timezones=st.just(dt.UTC))),
    (dt.timedelta, st.timedeltas(dt.timedelta(-999), dt.timedelta(999))),
    (uuid.UUID, st.uuids()),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (UserId, st.integers()),
    (list[Annotated[int, Field(ge=0, lt=10)]], st.lists(st.integers(0, 9))),
    (dict[str, Annotated[str, Field(min_length=1)]], st.dictionaries(st.text(), st.text(min_size=1))),
    (Any, st.none() | st.integers() | st.lists(st.text())),
    (list[object], st.lists(st.integers())),
    (Leaf, LEAVES),
    (Model, MODELS),
    (list[Leaf] | None, st.none() | st.lists(LEAVES, max_size=2)),
    (Mixed, st.builds(Mixed, LEAVES, st.binary(), ARRAYS, SIZES)),
    (NDArray[np.float64], ARRAYS),
    (NDArray[np.uint8], st.lists(st.integers(0, 255)).map(lambda one: np.array(one, np.uint8))),
]  # fmt: skip
"""Annotations, and strategies for their values."""
