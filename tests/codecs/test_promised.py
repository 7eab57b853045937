"""`invoker.codecs.promised`: whether a value may be what the return annotation says."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import typing
import uuid
from collections import abc
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Protocol, TypedDict, TypeVar

import msgspec
import numpy as np
import pydantic
import pytest
from numpy.typing import NDArray

from invoker.codecs import promised
from invoker.codecs.promised import check_promise
from invoker.errors import EncodeError
from invoker.message import Message
from tests.conftest import case_name

T = TypeVar("T")
Bound = TypeVar("Bound", bound=int)
Either = TypeVar("Either", str, bytes)
UserId = NewType("UserId", str)
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@dataclasses.dataclass
class Row:
    x: int = 0


class Wide(Row):
    """A subclass."""


class Point(NamedTuple):
    x: int
    y: int


class Struct(msgspec.Struct):
    x: int = 0


class Typed(TypedDict):
    x: int


class Colour(enum.Enum):
    RED = "red"


class Named(enum.StrEnum):
    A = "a"


class Sized(Protocol):
    def size(self) -> int: ...


class Box(pydantic.BaseModel, Generic[T]):
    x: T


class Crate(Generic[T]):
    """A generic class of the author's own."""


class Words(list[str]):
    """A list."""


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


FITS: list[tuple[Any, Any]] = [
    (Any, object()), (object, 1), (int, 1), (int, True), (float, 1), (float, True), (complex, 1), (complex, 1.5),
    (str, "x"), (str, Named.A), (bytes, bytearray(b"x")), (bytes, memoryview(b"x")), (bytearray, b"x"), (None, None),
    (type(None), None), (int | None, None), (int | None, 1), (typing.Optional[int], None),  # noqa: UP045
    (typing.Union[int, str], "x"), (int | list[str], ["x"]),  # noqa: UP007
    (list[int], ["not looked into"]), (list, []), (typing.List[int], []), (list[str], Words()),  # noqa: UP006
    (dict[str, int], {}), (dict, collections.OrderedDict()), (typing.Dict[str, int], {}),  # noqa: UP006
    (tuple[int, ...], ("x",)), (tuple[int, str], (1, "x")), (tuple, Point(1, 2)), (set[int], {1}),
    (abc.Sequence[int], (1,)), (abc.Mapping[str, int], {}), (abc.Callable[[], int], print), (abc.Sized, ""),
    (Row, Row()), (Row, Wide()), (Point, Point(1, 2)), (Struct, Struct()), (Typed, {"y": 1}),
    (Box[int], Box[int](x=1)), (Box[int], Box(x=1)), (Box, Box[int](x=1)), (Crate[int], Crate()),
    (Literal["a", "b"], "z"), (Literal[1], 2), (Literal["a"] | None, None), (Literal[Colour.RED], Colour.RED),
    (UserId, "me"), (Annotated[int, "a note"], 1), (Annotated[int | None, "a note"], None),
    (Annotated[int, Unhashable()], 1), (T, "x"), (Bound, 1), (Either, b""), (Either, ""),
    (Sized, 1), (typing.SupportsInt, "x"), (typing.LiteralString, "x"), (type[int], int), (typing.Hashable, 1),
    ("Row", 1), (typing.ForwardRef("Row"), 1), (typing.TextIO, object()), (Message[int] | str, 1),
    (Message[int] | None, None), (Message, 1), (pydantic.PositiveInt, 1), (pydantic.EmailStr, "a@example.org"),
    (pydantic.HttpUrl, "http://example.org"), (pydantic.Json, {}), (pydantic.AwareDatetime, NOW),
    (Colour, Colour.RED), (dt.date, NOW), (decimal.Decimal, decimal.Decimal(1)),
    (uuid.UUID, uuid.UUID(int=7)), (fractions.Fraction, fractions.Fraction(1)), (Row, msgspec.Raw(b"{}")),
    (int, np.int8(1)), (int, np.uint64(1)), (float, np.float16(1)), (float, np.float64(1)), (float, np.int32(1)),
    (bool, np.bool_(True)), (int, np.bool_(True)), (str, np.str_("x")), (bytes, np.bytes_(b"x")),
    (complex, np.float32(1)), (int | str, np.int8(1)), (np.float32, 1.5), (np.float32, 1),
    (np.float32, np.float64(1)), (np.int64, 1), (np.bool_, True), (np.floating[Any], np.float32(1)),
    (np.number[Any], 1), (np.int64, np.int32(1)),
    (np.ndarray, np.ones(2)), (NDArray[np.float32], np.ones(2)), (NDArray[np.float32], [1.0, 2.0]),
    (NDArray[np.float32], np.float32(1)), (NDArray[np.float32], 1.5),
    (NDArray[np.str_], "text"),
    (NDArray[Any] | None, None), (NDArray[Any] | None, np.ones(2)), (Annotated[NDArray[np.float32], (2,)], np.ones(2)),
]  # fmt: skip

NO: list[tuple[Any, Any, str]] = [
    (int, "x", "is declared int, and the function gave str"),
    (str, 1, "is declared str, and the function gave int"),
    (int, 1.0, "is declared int, and the function gave float"),
    (bool, 1, "is declared bool, and the function gave int"),
    (str, b"x", "is declared str, and the function gave bytes"),
    (bytes, "x", "is declared bytes, and the function gave str"),
    (int | str, 1.5, "is declared int | str, and the function gave float"),
    (int, None, "is declared int, and the function gave None; declare int | None if it may give none"),
    (None, 5, "is declared None, and the function gave int"),
    (Row, {"x": 1}, "is declared Row, and the function gave dict; return Row(**...)"),
    (Struct, {"x": 1}, "is declared Struct, and the function gave dict; return Struct(**...)"),
    (Box, {"x": 1}, "is declared Box, and the function gave dict; return Box(**...)"),
    (Row | None, {"x": 1}, "is declared Row | None, and the function gave dict; return Row(**...)"),
    (Point, (1, 2), "is declared Point, and the function gave tuple; return Point(*...)"),
    (Point, {"x": 1}, "is declared Point, and the function gave dict; return Point(**...)"),
    (Wide, Row(), "is declared Wide, and the function gave Row"),
    (Typed, [1], "is declared Typed, and the function gave list"),
    (list[int], (1,), "is declared list[int], and the function gave tuple"),
    (list[float], np.ones(2), "is declared list[float], and the function gave ndarray; return value.tolist()"),
    (float, np.ones(()), "is declared float, and the function gave ndarray; return value.item()"),
    (dict[str, int], [1], "is declared dict[str, int], and the function gave list"),
    (abc.Mapping[str, int], [1], "and the function gave list"),
    (Literal["a"], 1, "is declared Literal['a'], and the function gave int"),
    (Colour, "red", "is declared Colour, and the function gave str; return Colour(...)"),
    (UserId, 1, "and the function gave int"),
    (Annotated[int, "a note"], "x", "and the function gave str"),
    (Annotated[int, Unhashable()], "x", "and the function gave str"),
    (Bound, "x", "and the function gave str"),
    (Either, 1, "and the function gave int"),
    (Message[int] | None, "x", "and the function gave str"),
    (Crate[int], 1, "and the function gave int"),
    (Box[int], 1, "and the function gave int"),
    (type[int], 1, "and the function gave int"),
    (int, np.float32(1), "is declared int, and the function gave float32"),
    (str, np.int8(1), "is declared str, and the function gave int8"),
    (float, np.complex64(1), "is declared float, and the function gave complex64"),
    (np.int64, 1.5, "is declared int64, and the function gave float"),
    (np.floating[Any], "x", "and the function gave str"),
    (NDArray[np.float32], {"a": 1}, "is declared NDArray[float32], and the function gave dict"),
    (NDArray[np.float32], None, "and the function gave None; declare NDArray[float32] | None if it may give none"),
    (dt.datetime, "2026-01-01", "is declared datetime, and the function gave str"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "value"), FITS, ids=[f"{case_name(value):.14}-for-{type_!r:.30}" for type_, value in FITS]
)
def test_what_an_annotation_allows_passes(type_: Any, value: Any) -> None:
    """The first time that a class is met, and when it is known."""
    for _ in range(2):
        check_promise(type_, value, "output #0 'out'")


@pytest.mark.parametrize(
    ("type_", "value", "text"), NO, ids=[f"{case_name(value):.14}-for-{type_!r:.30}" for type_, value, _ in NO]
)
def test_what_is_not_declared_is_refused(type_: Any, value: Any, text: str) -> None:
    """Each time; the text says where, what is declared, what was given, and how to mend it where that is plain."""
    for _ in range(2):
        with pytest.raises(EncodeError) as caught:
            check_promise(type_, value, "output #0 'out'")
        assert caught.value.detail.startswith("output #0 'out' is declared ")
        assert caught.value.detail.endswith(text)


def test_a_class_is_compared_once() -> None:
    """The answer is kept by the annotation and the class, so the class is not asked about the next value."""
    asked: list[object] = []

    class Asking(type):
        def __instancecheck__(cls, instance: object) -> bool:
            asked.append(instance)
            return True

    class Declared(metaclass=Asking):
        pass

    check_promise(Declared, 1, "output")
    check_promise(Declared, 2, "output")
    assert asked == [1]


def test_R011_classes_without_end_do_not_fill_the_memory() -> None:
    """What is known starts anew when there is much of it."""
    for index in range(promised._MOST_KNOWN + 10):
        check_promise(Row, type(f"Row{index}", (Row,), {})(), "output")
        assert len(promised._known) <= promised._MOST_KNOWN
