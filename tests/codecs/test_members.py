"""`invoker.codecs.members`: what classes with fields consist of; their schemas are tested in schema/test_classes.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import attrs
import msgspec
import pytest

from invoker.codecs.members import NOTHING, Property, members_of


@dataclass
class Data:
    """A dataclass."""

    a: int
    b: object = print
    c: list[int] = field(default_factory=list)


class Struct(msgspec.Struct, rename="upper"):
    """A Struct."""

    a: int
    b: object = print
    c: list[int] = []


@attrs.define
class Attrs:
    """A class of attrs."""

    a: int
    b: object = print
    c: list[int] = attrs.Factory(list)


class Row(NamedTuple):
    """A tuple with names."""

    a: int
    b: object = print


class Keys(TypedDict):
    """A dict."""

    a: int


@pytest.mark.parametrize("cls", [Data, Struct, Attrs, Row, Keys])
def test_fields_and_their_defaults(cls: Any) -> None:
    """Defaults are as the class has them, whether JSON has them or not."""
    found = members_of(cls)
    assert found is not None
    first, *rest = found.properties
    assert first == Property("A" if cls is Struct else "a", int, True, NOTHING)
    assert [one.default for one in rest] == [print, []][: len(rest)]
    assert found.is_array is (cls is Row)


def test_other_classes_have_none() -> None:
    """Also not as arguments."""
    assert members_of(int) is members_of(list) is None
