"""`invoker.codecs.standins`: what msgspec cannot make, made by every codec, wherever it stands."""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Optional, TypedDict, TypeVar

import attrs
import msgspec
import pytest
from typing_extensions import TypeAliasType

from invoker.codecs.anyvalue import ANY
from invoker.codecs.anyvalue.pack import pack
from invoker.codecs.standins import understood
from invoker.codecs.support import decodable
from invoker.codecs.typed import converter
from invoker.errors import DecodeError
from tests.codecs.wire import JSON, MSGPACK, TEXT, Opaque, decode, encode


class Pair(enum.Enum):
    """Values that are tuples."""

    A = (1, 2)
    B = (3, 4)


class Mixed(enum.Enum):
    """Values of several kinds, one of them null."""

    NUMBER = 1.5
    TEXT = "text"
    NOTHING = None


@dataclass
class Left:
    """One of two with distinct fields."""

    x: int
    note: str = "n"


@dataclass
class Right:
    """The other one."""

    y: int = 0
    note: str = "n"


@dataclass
class Cat:
    """One of two with a tag."""

    kind: Literal["cat"]
    size: int = 1


@attrs.define
class Dog:
    """The other one, of another library."""

    kind: Literal["dog", "hound"]
    size: int = 2


class Keys(TypedDict):
    """A dict that may lack a key."""

    z: int
    more: NotRequired[Left | Right]


class Row(NamedTuple):
    """A tuple with names."""

    one: Left | Right
    pair: Pair = Pair.A


class Struct(msgspec.Struct, rename="camel"):
    """Fields that are written otherwise."""

    one_of: list[Left | Right]
    raw: bytes = b""


T = TypeVar("T")
Some = TypeVar("Some", int, str)


@dataclass(frozen=True)
class Box(Generic[T]):
    """A generic class."""

    item: T
    items: list[T] = field(default_factory=list)


@dataclass
class Tree:
    """A class that holds itself, and what is to be replaced."""

    value: Left | Right
    children: list[Tree] = field(default_factory=list)
    parent: Tree | None = None


Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")
Bounded = TypeAliasType("Bounded", Annotated[int, msgspec.Meta(le=3)])
Listed = TypeAliasType("Listed", list[T], type_params=(T,))
Nested = TypeAliasType("Nested", "Left | list[Nested]")

CASES: list[tuple[Any, Any, Any]] = [
    (Pair, "A", Pair.A),
    (Pair, [3, 4], Pair.B),
    (Mixed, "NUMBER", Mixed.NUMBER),
    (Mixed, "text", Mixed.TEXT),
    (Optional[Pair], None, None),  # noqa: UP045 - as authors write it
    (Left | Right, {"x": 1}, Left(1)),
    (Right | Left, {"x": 1}, Left(1)),
    (Right | Left, {"y": 1}, Right(1)),
    (Right | Left | None, None, None),
    (Left | Right | int, 3, 3),
    (Left | Right | list[int], [3], [3]),
    (Cat | Dog, {"kind": "dog"}, Dog("dog")),
    (Dog | Cat, {"kind": "cat", "size": 7}, Cat("cat", 7)),
    (Keys | Left, {"z": 1, "more": {"y": 2}}, {"z": 1, "more": Right(2)}),
    (Keys, {"z": 1}, {"z": 1}),
    (Row, [{"y": 1}], Row(Right(1))),
    (Struct, {"oneOf": [{"y": 1}]}, Struct([Right(1)])),
    (Box[Left | Right], {"item": {"y": 1}, "items": [{"x": 1}]}, Box(Right(1), [Left(1)])),
    (Tree, {"value": {"x": 1}, "children": [{"value": {"y": 2}}]}, Tree(Left(1), [Tree(Right(2))])),
    (Json, {"a": [1, None, {"b": 2.5}, "c", True]}, {"a": [1, None, {"b": 2.5}, "c", True]}),
    (Bounded, 3, 3),
    (Nested, [{"x": 1}, [{"x": 2}]], [Left(1), [Left(2)]]),
    (Listed[Left | Right], [{"x": 1}], [Left(1)]),
    (list[Some], [1, "a"], [1, "a"]),
    (list[T], [1, "a"], [1, "a"]),
    (list[int] | list[str], ["a"], ["a"]),
]
BAD: list[tuple[Any, Any, str]] = [
    (Pair, "C", "'C' is not a member of Pair; expected one of 'A', 'B'"),
    (Left | Right, {"x": "a"}, "Expected `int`, got `str` - at `$.x`"),
    (Cat | Dog, {"kind": "cow"}, "Expected one of `Cat`, `Dog`"),
    (Tree, {"value": {"x": 1}, "children": [{"value": 3}]}, "at `$.children"),
    (Tree, {}, "missing required field `value`"),
    (Bounded, 4, "<= 3"),
    (list[Bounded], [4], "<= 3"),
    (Nested, [[3]], "Expected"),
]

WIRES: dict[str, Callable[[Any, Any], Any]] = {
    "json": lambda type_, value: decode(JSON, json.dumps(value).encode(), type_),
    "msgpack": lambda type_, value: decode(MSGPACK, msgspec.msgpack.encode(value), type_),
    "any": lambda type_, value: decode(ANY, pack(value), type_),
    "plain": lambda type_, value: converter(type_)(value),
    "lax": lambda type_, value: converter(type_, is_lax=True)(value),
}
WRAPS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "alone": (lambda one: one, lambda one: one),
    "list": (lambda one: list[one], lambda one: [one]),
    "dict": (lambda one: dict[str, one], lambda one: {"k": one}),
    "tuple": (lambda one: tuple[one, int], lambda one: [one, 1]),
    "marked": (lambda one: Annotated[one, "words"], lambda one: one),
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("type_", "sent", "expected"), CASES, ids=lambda one: str(one)[:60])
def test_every_codec_makes_it(type_: Any, sent: Any, expected: Any, wire: str, wrap: str) -> None:
    """Alone, and within others."""
    within, put = WRAPS[wrap]
    made = WIRES[wire](within(type_), put(sent))
    assert made == (tuple(put(expected)) if wrap == "tuple" else put(expected))
    assert decodable(within(type_)) is None


@pytest.mark.parametrize(("type_", "sent", "expected"), CASES, ids=lambda one: str(one)[:60])
def test_what_was_made_can_be_sent_back(type_: Any, sent: Any, expected: Any) -> None:
    """A function gives what it was given."""
    for accept in (JSON, MSGPACK):
        assert decode(*encode(accept, expected), type_) == expected


@pytest.mark.parametrize("wire", ["json", "msgpack", "plain"])
@pytest.mark.parametrize(("type_", "sent", "words"), BAD, ids=lambda one: str(one)[:60])
def test_what_fits_nothing_is_refused(type_: Any, sent: Any, words: str, wire: str) -> None:
    """By what was expected, and where."""
    with pytest.raises((DecodeError, msgspec.ValidationError)) as caught:
        WIRES[wire](type_, sent)
    assert words in str(caught.value)


def test_text_is_read_as_elsewhere() -> None:
    """The name of a member, and numbers of a form."""
    assert decode(TEXT, b"B", Pair) is Pair.B
    assert converter(Left | Right, is_lax=True)({"y": "3"}) == Right(3)


def test_bytes_within_travel_as_elsewhere() -> None:
    """As base64 in JSON, as they are in MessagePack."""
    sent = {"oneOf": [], "raw": base64.b64encode(b"\xff").decode()}
    assert decode(JSON, json.dumps(sent).encode(), Struct) == Struct([], b"\xff")
    assert decode(MSGPACK, msgspec.msgpack.encode({"oneOf": [], "raw": b"\xff"}), Struct) == Struct([], b"\xff")


@pytest.mark.parametrize(
    "type_",
    [int, Any, list[int], Left, Left | None, Literal[1], dict[str, list[Left]], list["Missing"]],  # type: ignore[name-defined]  # noqa: F821
)
def test_other_annotations_stay(type_: Any) -> None:
    """msgspec makes them itself."""
    assert understood(type_) is type_


@pytest.mark.parametrize("type_", [Left | Opaque | Right, list[Left | Opaque], Box[list[Opaque] | Left]])
def test_what_nobody_makes_is_still_told(type_: Any) -> None:
    """In one sentence with its name."""
    assert "Opaque" in (decodable(type_) or "")
