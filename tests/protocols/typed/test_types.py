"""Annotations as kinds."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import numpy as np
import pydantic
import pytest
from numpy.typing import NDArray

from invoker.protocols.typed.kinds import AnyKind
from invoker.protocols.typed.schema import Schema
from invoker.protocols.typed.text import proto_text
from invoker.protocols.typed.types import Types
from tests.protocols.typed.written import message_of

T = TypeVar("T")


class Colour(enum.Enum):
    """What it looks like."""

    RED = 1
    DarkGreen = 2


@dataclass
class Point:
    x: int
    y: float = 1.5
    tags: list[str] = field(default_factory=list)
    size: int = field(default=0, init=False)


@dataclass
class Tree:
    children: list[Tree]
    parent: Tree | None


class Keys(TypedDict):
    a: int
    b: NotRequired[int]


class Loose(TypedDict, total=False):
    a: int


class Struct(msgspec.Struct):
    id: int
    name: str = ""


class Model(pydantic.BaseModel):
    size: Annotated[int, pydantic.Field(gt=0)]
    note: str | None = None


class Pair(NamedTuple):
    left: int
    right: str = ""


@dataclass
class Box(Generic[T]):
    content: T


def field_of(type_: Any) -> str:
    """The field of a message that holds a value of this type."""
    return text_of(type_, "Holder")


def text_of(type_: Any, message: str) -> str:
    """A message, after a field of this type was made."""
    types = Types("Holder")
    holder = types.message("Holder")
    holder.fields.append(types._field("x", 1, types.kind(type_), source="x"))
    schema = Schema("shop", "ShopService", messages=types.messages, enums=types.enums)
    return message_of(schema, message)


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (int, "int64 x = 1;"),
        (float, "double x = 1;"),
        (str, "string x = 1;"),
        (bool, "bool x = 1;"),
        (bytes, "bytes x = 1;"),
        (bytearray, "bytes x = 1;"),
        (Annotated[int, "note"], "int64 x = 1;"),
        (int | None, "optional int64 x = 1;"),
        (list[int] | None, "Int64List x = 1;"),
        (Point | None, "Point x = 1;"),
        (list[int], "repeated int64 x = 1;"),
        (list[list[int]], "repeated Int64List x = 1;"),
        (list[int | None], "repeated google.protobuf.Value x = 1;"),
        (list, "repeated google.protobuf.Value x = 1;"),
        (set[str], "repeated string x = 1;"),
        (frozenset[str], "repeated string x = 1;"),
        (deque[str], "repeated string x = 1;"),
        (Sequence[str], "repeated string x = 1;"),
        (tuple[int, ...], "repeated int64 x = 1;"),
        (tuple[int, str], "Int64StringTuple x = 1;"),
        (dict[str, int], "map<string, int64> x = 1;"),
        (Mapping[int, Point], "map<int64, Point> x = 1;"),
        (dict[str, list[int]], "map<string, Int64List> x = 1;"),
        (dict[str, Any], "google.protobuf.Struct x = 1;"),
        (dict[float, int], "google.protobuf.Struct x = 1;"),
        (dict, "google.protobuf.Struct x = 1;"),
        (Any, "google.protobuf.Value x = 1;"),
        (object, "google.protobuf.Value x = 1;"),
        (complex, "google.protobuf.Value x = 1;"),
        (int | Any, "google.protobuf.Value x = 1;"),
        (None, "google.protobuf.Empty x = 1;"),
        (dt.datetime, "google.protobuf.Timestamp x = 1;"),
        (dt.timedelta, "google.protobuf.Duration x = 1;"),
        (dt.date, "string x = 1;"),
        (dt.time, "string x = 1;"),
        (uuid.UUID, "string x = 1;"),
        (decimal.Decimal, "string x = 1;"),
        (Literal["a", "b"], "string x = 1;"),
        (Literal[1, 2], "int64 x = 1;"),
        (Literal[1, "a"], "google.protobuf.Value x = 1;"),
        (Colour, "Colour x = 1;"),
        (np.ndarray, "Tensor x = 1;"),
        (NDArray[np.float32], "Tensor x = 1;"),
        (int | str, "Int64OrString x = 1;"),
        (Box[int], "BoxInt x = 1;"),
    ],
)
def test_H105_every_annotation_has_a_type(type_, found):
    """As docs/reference/typed.md has them."""
    assert field_of(type_) == found


@pytest.mark.parametrize(
    ("type_", "message", "found"),
    [
        (Point, "Point", "int64 x = 1; optional double y = 2; repeated string tags = 3;"),
        (Tree, "Tree", "repeated Tree children = 1; Tree parent = 2;"),
        (Keys, "Keys", "int64 a = 1; optional int64 b = 2;"),
        (Loose, "Loose", "optional int64 a = 1;"),
        (Struct, "Struct", "int64 id = 1; optional string name = 2;"),
        (Model, "Model", "int64 size = 1; optional string note = 2;"),
        (Pair, "Pair", "int64 left = 1; optional string right = 2;"),
        (Box[str], "BoxStr", "string content = 1;"),
        (Box[list[int]], "BoxListInt", "repeated int64 content = 1;"),
        (tuple[int, int | None], "Int64OptionalInt64Tuple", "int64 item_1 = 1; optional int64 item_2 = 2;"),
        (
            int | float | Point | list[int] | None,
            "Int64OrDoubleOrPointOrInt64List",
            "oneof kind { int64 int64_value = 1; double double_value = 2; Point point = 3; Int64List int64_list = 4; }",
        ),
        (np.ndarray, "Tensor", "repeated int64 shape = 1; string dtype = 2; bytes data = 3;"),
    ],
)
def test_H105_classes_are_messages(type_, message, found):
    """A field for each of theirs, in their order; those with a default tell whether they are there."""
    assert text_of(type_, message) == found


def test_H105_attributes_of_attrs_may_be_private():
    """They are given without the underline."""
    attrs = pytest.importorskip("attrs")

    class Private:
        _x: int
        y: int = 3

    Private.__annotations__ = {"_x": int, "y": int}
    made = attrs.define(Private)
    assert text_of(made, "Private") == "int64 x = 1; optional int64 y = 2;"
    kind = Types().kind(made)
    assert kind.make({"_x": 1}) == made(x=1)


def test_H105_a_class_that_cannot_be_understood_is_a_value():
    """It breaks no other method."""

    @dataclass
    class Odd:
        x: Unknown  # noqa: F821 - as of a name that only type checkers know

    assert field_of(Odd) == "google.protobuf.Value x = 1;"


def test_H105_an_enum_begins_with_a_value_that_stands_for_nothing():
    """Names have the enum's in front, as those of a package share one scope."""
    types = Types()
    types.kind(Colour)
    values = [(name, number) for name, number, _ in types.enums[0].values]
    assert values == [("COLOUR_UNSPECIFIED", 0), ("COLOUR_RED", 1), ("COLOUR_DARK_GREEN", 2)]
    assert "// What it looks like.\nenum Colour {" in proto_text(Schema("a", "AService", enums=types.enums))


def test_H105_classes_of_the_same_name_do_not_clash():
    """The second one gets a number; each is there once."""
    types = Types("Point")

    @dataclass
    class Pair:
        x: int

    kinds = [types.kind(one) for one in (Point, Pair, Point, globals()["Pair"])]
    assert [one.definition.name for one in kinds] == ["Point2", "Pair", "Point2", "Pair2"]
    assert len(types.messages) == 3


def test_H105_wrappers_are_shared_by_kinds_that_are_alike():
    """Two classes that protobuf shows alike still become what each of them says."""
    types = Types()
    alike, other, strange = (types.singular(types.kind(list[one])) for one in (int, int, complex))
    also = types.singular(types.kind(list[range]))
    assert alike.definition is other.definition
    assert (strange.definition.name, also.definition.name) == ("ValueList", "ValueList2")


def test_H105_what_goes_round_for_ever_ends():
    """An alias that names itself is a Value deep inside."""
    types = Types()
    inner: Any = int
    for _ in range(200):
        inner = tuple[inner, int]
    assert types.kind(inner) is not None
    assert any(isinstance(one.fields[0].kind, AnyKind) for one in types.messages)
