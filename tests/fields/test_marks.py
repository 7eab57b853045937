"""`invoker.fields.marks`: which marks are read here, and which a codec has to apply."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any

import annotated_types as at
import msgspec
import pydantic
import pytest

from invoker import Field
from invoker.fields.marks import kinds_of, misplaced, unmarked, unread
from tests.conftest import case_name

READ: list[Any] = [
    int, Annotated[int, "words"], Annotated[int, Field(ge=0, le=4)], Annotated[int | None, at.Gt(0)],
    Annotated[Any, Field(ge=0)], Annotated[int | str, Field(ge=0)], Annotated[str, pydantic.Field(pattern="a")],
    Annotated[str, pydantic.StringConstraints(min_length=1)], Annotated[list[int], at.Len(1, 2)],
    Annotated[int, at.Interval(gt=0)], Annotated[int, at.Unit("m")], Annotated[int, pydantic.Field(title="t")],
    Annotated[int, object()], list[Annotated[int, at.MultipleOf(2)]],
]  # fmt: skip
UNREAD: list[Any] = [
    Annotated[int, at.MultipleOf(2)], Annotated[int, msgspec.Meta(multiple_of=2)], Annotated[Decimal, Field(ge=0)],
    Annotated[dt.datetime, msgspec.Meta(tz=True)], Annotated[dt.date, at.Gt(dt.date(2020, 1, 1))],
    Annotated[int, at.Gt(Decimal(1))], Annotated[int, pydantic.AfterValidator(abs)], Annotated[int, pydantic.Strict()],
    Annotated[str, pydantic.StringConstraints(to_upper=True)], Annotated[int, pydantic.Field(multiple_of=2)],
    Annotated[int, pydantic.Field(default=2)], Annotated[int, at.Predicate(bool)] | None,
    Annotated[Annotated[int, at.Predicate(bool)], "words"], Annotated[object.__class__, Field(min_length=1)],
]  # fmt: skip


@pytest.mark.parametrize("type_", READ, ids=case_name)
def test_what_is_read_here(type_: Any) -> None:
    """Bounds of numbers, lengths and patterns, where the values can have them."""
    assert not unread(type_)


@pytest.mark.parametrize("type_", UNREAD, ids=case_name)
def test_what_a_codec_has_to_apply(type_: Any) -> None:
    """All else that a library says of values."""
    assert unread(type_)


def test_what_only_a_field_of_a_class_can_have() -> None:
    """A default and another name."""
    assert misplaced(pydantic.Field(default=3)) == "default"
    assert misplaced(pydantic.Field(alias="x")) == "alias"
    assert misplaced(pydantic.Field(gt=3)) == misplaced("words") == ""


def test_marks_are_stripped() -> None:
    """On the outside, and of the members of a union."""
    assert unmarked(Annotated[int, "x"] | None) == int | None
    assert kinds_of(Annotated[int | Annotated[str, "x"], "y"]) == (int, str)
