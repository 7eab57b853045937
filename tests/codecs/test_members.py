"""`invoker.codecs.members`: what classes with fields consist of."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions

from invoker.codecs.members import NOTHING, Property, members_of
from invoker.fields.aliases import substituted

T = TypeVar("T")


@dataclass
class Data:
    """What it is.

    And more.
    """

    a: int
    b: list[int] = field(default_factory=list)
    c: object = field(default_factory=object)
    g: object = print
    d: int = field(default=3, init=False)
    e: ClassVar[int] = 4
    f: InitVar[int] = 5


@attrs.define
class Attrs:
    a: int
    b: list[int] = attrs.field(factory=list)
    c: int = 3
    d: int = attrs.field(default=4, init=False)


class Struct(msgspec.Struct, rename="camel", tag_field="kind", tag="s", forbid_unknown_fields=True):
    first_name: str
    last_name: str = ""


class Row(msgspec.Struct, array_like=True):
    a: int


class Keys(TypedDict, total=False):
    a: int
    b: NotRequired[str]


class Asked(TypedDict):
    a: int
    b: NotRequired[str]


class More(Asked, total=False):
    c: Required[int]
    d: int


class OtherKeys(typing_extensions.TypedDict):
    """A dict, as pydantic asks for it before Python 3.12."""

    a: int


class Model(pydantic.BaseModel):
    a: int = pydantic.Field(alias="A")


@attrs.define
class Private:
    _a: int
    b: int = attrs.field(default=0, alias="other")


class Pair(NamedTuple):
    a: int
    b: str = "x"


@dataclass
class Box(Generic[T]):
    item: T
    items: dict[str, T]


def properties(cls: Any, *arguments: Any) -> list[tuple[Any, ...]]:
    found = members_of(cls, arguments)
    assert found is not None
    return [one[:4] for one in found.properties]


def test_H065_dataclasses() -> None:
    """What the constructor takes; a factory's value is a default only if it is always the same."""
    assert properties(Data) == [
        ("a", int, True, NOTHING),
        ("b", list[int], False, []),
        ("c", object, False, NOTHING),
        ("g", object, False, print),
    ]
    found = members_of(Data)
    assert found is not None
    assert (found.doc, found.is_array, found.is_closed, found.tag) == ("What it is.", False, False, None)


def test_H065_attrs() -> None:
    """The same."""
    assert properties(Attrs) == [("a", int, True, NOTHING), ("b", list[int], False, []), ("c", int, False, 3)]


def test_H065_structs() -> None:
    """By the names that are encoded, with a tag, as an array."""
    assert properties(Struct) == [("firstName", str, True, NOTHING), ("lastName", str, False, "")]
    found, row = members_of(Struct), members_of(Row)
    assert found is not None
    assert row is not None
    assert (found.tag, found.is_closed, found.is_array) == (("kind", "s"), True, False)
    assert (row.tag, row.is_closed, row.is_array) == (None, False, True)


def test_H065_typed_dicts_and_named_tuples() -> None:
    """Keys that may be left out; a tuple is an array, and fields without annotations are anything."""
    assert [one[0] for one in properties(Keys)] == ["a", "b"]
    assert not any(one[2] for one in properties(Keys))
    assert properties(Asked) == [("a", int, True, NOTHING), ("b", str, False, NOTHING)]
    assert [one[:3] for one in properties(More)][2:] == [("c", int, True), ("d", int, False)]
    assert properties(OtherKeys) == [("a", int, True, NOTHING)]
    assert properties(Pair) == [("a", int, True, NOTHING), ("b", str, False, "x")]
    bare = members_of(namedtuple("Bare", "x"))  # noqa: PYI024 - authors have them
    assert bare is not None
    assert (bare.properties, bare.is_array, bare.doc) == ([Property("x", Any, own="x", parameter="x")], True, "")


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (Data, ("a", "a", "a")),
        (Struct, ("firstName", "first_name", "first_name")),
        (Model, ("A", "a", "a")),
        (Private, ("_a", "_a", "a")),
    ],
)
def test_the_names_of_a_field(cls: Any, names: tuple[str, str, str]) -> None:
    """In JSON, of the attribute, and of the parameter by which the class takes it."""
    found = members_of(cls)
    assert found is not None
    assert (found.properties[0].name, found.properties[0].own, found.properties[0].parameter) == names


def test_attrs_may_take_a_value_by_another_name() -> None:
    """The author's own."""
    found = members_of(Private)
    assert found is not None
    assert found.properties[1][-2:] == ("b", "other")


def test_H065_type_parameters_are_put_in() -> None:
    """At any depth."""
    assert properties(Box, int) == [("item", int, True, NOTHING), ("items", dict[str, int], True, NOTHING)]
    assert substituted(dict[T, list[T]], {T: int}) == dict[int, list[int]]  # type: ignore[valid-type]
    assert substituted(int, {T: int}) is int


def test_H065_others_have_no_members() -> None:
    """Neither have classes that merely have attributes."""

    class Plain:
        a: int = 1

    assert [members_of(one) for one in (Plain, int, dict, list)] == [None] * 4


def test_H065_docstrings_that_nobody_wrote_are_not_told() -> None:
    """Dataclasses and named tuples make one of their fields."""
    for cls in (Pair, Attrs, Box):
        found = members_of(cls)
        assert found is not None
        assert found.doc == ""
