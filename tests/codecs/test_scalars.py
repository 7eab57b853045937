"""`invoker.codecs.scalars`: one piece of text to a value and back."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.codecs.scalars import reader, same, writer
from tests.codecs.wire import Colour, Opaque


class Level(enum.IntEnum):
    """An enum of numbers."""

    LOW = 1


Many = enum.IntEnum("Many", [f"M{one}" for one in range(9)], start=0)
AS_JSON = "send JSON as application/json (with curl: -H 'Content-Type: application/json')"


class Name(str):
    """A str of its own."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (int, "2", 2), (int, " -2\n", -2), (int, "9" * 30, int("9" * 30)), (float, "1e3", 1000.0), (float, " 2\n", 2.0),
        (bool, "true", True), (bool, "False", False), (bool, "1", True), (bool, " on ", True),
        (bool, "Off", False), (bool | None, "", None), (bool | None, "on", True), (bool | None, "null", None),
        (int | None, "", None), (int | None, "3", 3),
        (int | str, "2", "2"), (int | float, "1.5", 1.5), (Literal["a", "b"], "a", "a"), (Literal[1, 2], "2", 2),
        (Colour, "red", Colour.RED), (Level, "1", Level.LOW), (Decimal, "1.50", Decimal("1.50")),
        (dt.date, "2026-11-21", dt.date(2026, 11, 21)), (uuid.UUID, "0" * 32, uuid.UUID(int=0)),
        (Annotated[int, msgspec.Meta(ge=0)], "3", 3), (None, "null", None), (type(None), "", None),
        (int | bytes, "3", 3),
    ],
)  # fmt: skip
def test_R094_text_is_read_as_the_annotation_wants(type_: Any, text: str, expected: object) -> None:
    """Numbers, booleans, enums, dates and unions of them."""
    found = reader(type_)(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("type_", "text"),
    [(int, "x"), (int, ""), (int, "1.5"), (int, "1_0"), (int, "٣"), (int, "0x1"), (int, "9" * 5000), (float, "x"),
     (bool, "yes"), (bool, ""), (bool | None, "yes"),
     (bool, "2"), (Colour, "green"), (Literal["a"], "b"), (Annotated[int, msgspec.Meta(ge=0)], "-1"),
     (int | None, "x")],
)  # fmt: skip
def test_R094_what_does_not_fit_is_an_ordinary_error(type_: Any, text: str) -> None:
    """For the codec to translate."""
    with pytest.raises(ValueError, match=r"[Ee]xpected|[Ii]nvalid|range"):
        reader(type_)(text)


@pytest.mark.parametrize(
    ("type_", "text", "told"),
    [
        (float, "five", "expected float, got 'five'"),
        (int, "five", "expected an integer, got 'five'"),
        (bool, "yes", "expected true or false, got 'yes'"),
        (int, "9" * 5000, f"expected an integer, got '{'9' * 60}'..."),
        (float, "y" * 61, f"expected float, got '{'y' * 60}'..."),
        (float, "y" * 60, f"expected float, got '{'y' * 60}'"),
        (Colour, "green", "Invalid enum value 'green'; expected one of 'red', 'blue'"),
        (Many, "9", "Invalid enum value 9, got '9'; expected one of 0, 1, 2, 3, 4, 5, 6, 7 and 1 more"),
        (list[int], "x", "expected array, got 'x'"),
        (list[int], '{"x": 1}', """expected array, got '{"x": 1}'"""),
        (dict[str, int], '{"x": "y"}', f"""expected object, got '{{"x": "y"}}'; {AS_JSON}"""),
        (list[int], " [1", f"expected array, got ' [1'; {AS_JSON}"),
        (NDArray[np.float32], "[1, 2]", f"object cannot become float32 without loss, got '[1, 2]'; {AS_JSON}"),
        (int, "[1]", "expected an integer, got '[1]'"),
        (dt.date, "today", "Invalid RFC3339 encoded date, got 'today'"),
        (Annotated[int, msgspec.Meta(ge=0)], "-1", "Expected `int` >= 0, got '-1'"),
    ],
)
def test_a_refusal_shows_the_text(type_: Any, text: str, told: str) -> None:
    """Once, sixty signs of it at most; that it is a str, as all text is, is not said."""
    with pytest.raises(ValueError, match=r".") as caught:
        reader(type_)(text)
    assert str(caught.value) == told


def test_text_that_is_wanted_as_text_is_untouched() -> None:
    """No stripping, no converting."""
    assert reader(str) is reader(Any) is reader(str | int) is reader(str | bytes) is same
    assert same(" x ") == " x "


def test_what_nothing_can_make_is_refused_at_once() -> None:
    """Not at the first message."""
    with pytest.raises(TypeError):
        reader("Unresolved")


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (Name("y"), "y"), (7, "7"), (True, "true"), (None, ""), (Decimal("1.50"), "1.50"), (Colour.RED, "red"),
     (Level.LOW, "1"), (dt.date(2026, 11, 21), "2026-11-21"), (uuid.UUID(int=0), str(uuid.UUID(int=0))),
     (1 + 2j, "(1+2j)"),
     (np.int64(3), "3"), (np.float32(0.5), "0.5"), (np.bool_(True), "true")],
)  # fmt: skip
def test_R078_scalars_are_spelt(value: object, text: str) -> None:
    """As their readers expect them."""
    write = writer(type(value))
    assert write is not None
    assert write(value) == text


def test_what_is_no_scalar_has_no_spelling() -> None:
    """Structures, bytes and unknown classes."""
    for cls in (dict, list, bytes, Opaque, np.ndarray, type):
        assert writer(cls) is None


def test_an_enum_of_structures_is_refused() -> None:
    """When its value is written."""

    class Odd(enum.Enum):
        PAIR = (1, 2)

    write = writer(Odd)
    assert write is not None
    with pytest.raises(TypeError):
        write(Odd.PAIR)
