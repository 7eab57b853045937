"""Classes of every kind that authors use in annotations."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Required, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
from typing_extensions import TypeAliasType

from invoker import Field

T = TypeVar("T")
Some = TypeVar("Some", int, str)
Bound = TypeVar("Bound", bound=int)

UserId = NewType("UserId", int)
Name = NewType("Name", str)
Inner = NewType("Inner", UserId)
Ints = TypeAliasType("Ints", list[int])
Pairs = TypeAliasType("Pairs", dict[str, T], type_params=(T,))  # type: ignore[misc]  # as Python 3.12 has it
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | int | float | bool | None")  # type: ignore[misc]  # it holds itself


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "y"
    NO = "n"


class Odd(enum.Enum):
    ONE = (1, 2)
    TWO = 2.5


class Mixed(enum.Enum):
    A = "a"
    B = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Text(str):
    __slots__ = ()


class Rows(list[int]):
    pass


@dataclass
class Point:
    x: int
    y: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    a: int
    b: str = "b"


@dataclass
class Node:
    value: int
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


@dataclass
class Box(Generic[T]):
    item: T


@dataclass
class Held:
    """Values of many kinds in a class."""

    at: dt.datetime
    key: uuid.UUID
    price: decimal.Decimal
    data: bytes
    colour: Colour = Colour.RED
    several: tuple[int, str] = (1, "a")
    maybe: Point | None = None
    by_name: dict[str, Point] = field(default_factory=dict)


@dataclass
class Bounded:
    size: Annotated[int, Field(ge=0, le=9)]


@dataclass
class Cat:
    kind: Literal["cat"]
    lives: int = 9


@dataclass
class Dog:
    kind: Literal["dog"]
    name: str = ""


@attrs.define
class Size:
    width: int
    name: str = "x"


@attrs.define
class Private:
    _a: int


@attrs.define
class Renamed:
    b: int = attrs.field(default=0, alias="other")


class Row(msgspec.Struct):
    id: int
    note: str = ""


class Camel(msgspec.Struct, rename="camel"):
    line_width: int
    is_thin: bool = False


class Tagged(msgspec.Struct, tag=True):
    radius: float


class Square(msgspec.Struct, tag=True):
    side: int


class Array(msgspec.Struct, array_like=True):
    a: int
    b: str = ""


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    a: int


class Wide(msgspec.Struct, Generic[T]):
    item: T
    items: list[T] = []


class Keys(TypedDict):
    a: int
    b: NotRequired[list[str]]


class Loose(TypedDict, total=False):
    a: Required[int]
    b: str


class Longer(Keys, total=False):
    c: int


class Cell(TypedDict, Generic[T]):
    item: T


class Pair(NamedTuple):
    a: int
    b: str = "x"


class Model(pydantic.BaseModel):
    size: int = pydantic.Field(gt=0)
    name: str = "x"


class Aliased(pydantic.BaseModel):
    size: int = pydantic.Field(default=1, alias="Size")


class Crate(pydantic.BaseModel, Generic[T]):
    item: T


@pydantic.dataclasses.dataclass
class Checked:
    size: Annotated[int, pydantic.Field(gt=0)]


class Plain:
    """A class of which nothing knows the fields."""

    def __init__(self, a: int = 0) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and other.a == self.a

    __hash__ = None  # type: ignore[assignment]  # it has an equal


@dataclass
class Holds:
    plain: Plain


@dataclass
class Anything:
    a: Any
    b: object = None
