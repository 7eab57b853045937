"""Types as a ToolSpec writes them."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import typing
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, TypeVar, Union

import pytest
from typing_extensions import TypeAliasType

from invoker.protocols.toolbridge.typenames import allowed_values, elixir_type, python_type

T = TypeVar("T")


class Colour(enum.Enum):
    """An enum of two kinds."""

    RED = "red"
    NUMBER = 5
    ON = True


class Empty(enum.Enum):
    """An enum without members."""


@dataclass
class Point:
    """A class with fields."""

    x: int


UserId = typing.NewType("UserId", int)
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | int")  # type: ignore[misc]  # it holds itself
Tree = TypeAliasType("Tree", "tuple[T, list[Tree[T]]]", type_params=(T,))  # type: ignore[misc]  # so does this one


@pytest.mark.parametrize(
    ("annotation", "python", "elixir"),
    [
        (str, "str", "binary"),
        (int, "int", "integer"),
        (float, "float", "float"),
        (bool, "bool", "boolean"),
        (bytes, "bytes", "binary"),
        (None, "None", "nil"),
        (type(None), "None", "nil"),
        (Any, "Any", "any"),
        (object, "Any", "any"),
        (list, "List", "[any]"),
        (list[str], "List[str]", "[binary]"),
        (typing.List[int], "List[int]", "[integer]"),  # noqa: UP006 - both spellings
        (list[list[float]], "List[List[float]]", "[[float]]"),
        (dict, "Dict", "map"),
        (dict[str, int], "Dict[str, int]", "map"),
        (Mapping[str, int], "Mapping[str, int]", "map"),
        (Sequence[int], "Sequence[int]", "[integer]"),
        (MutableSequence[int], "MutableSequence[int]", "[integer]"),
        (Json, "Json", "any"),
        (Tree[int], "Tree[int]", "any"),
        (list[Json], "List[Json]", "[any]"),
        (tuple, "Tuple", "{..}"),
        (tuple[int, str], "Tuple[int, str]", "{integer, binary}"),
        (tuple[int, ...], "Tuple[int, ...]", "[integer]"),
        (set[int], "Set[int]", "[integer]"),
        (frozenset[str], "FrozenSet[str]", "[binary]"),
        (collections.deque[int], "Deque[int]", "[integer]"),
        (Optional[int], "Optional[int]", "integer | nil"),  # noqa: UP045 - both spellings
        (int | None, "Optional[int]", "integer | nil"),
        (None | int, "Optional[int]", "integer | nil"),
        (Union[int, str], "Union[int, str]", "integer | binary"),  # noqa: UP007 - both spellings
        (int | str | None, "Optional[Union[int, str]]", "integer | binary | nil"),
        (str | bytes, "Union[str, bytes]", "binary"),
        (int | Any, "Union[int, Any]", "any"),
        (Literal["a", 1], "Literal['a', 1]", "binary | integer"),
        (Literal[Colour.RED], "Literal[Colour.RED]", "binary"),
        (Colour, "Colour", "binary | integer | boolean"),
        (Empty, "Empty", "any"),
        (Point, "Point", "map"),
        (list[Point], "List[Point]", "[map]"),
        (Annotated[int, "x"], "int", "integer"),
        (list[Annotated[int, "x"] | None], "List[Optional[int]]", "[integer | nil]"),
        (UserId, "int", "integer"),
        (dt.datetime, "datetime", "any"),
        (Callable[[int], str], "Callable[str]", "any"),
    ],
)
def test_T025_T026_spelling(annotation: Any, python: str, elixir: str) -> None:
    """With the capitals of `typing`, and as Elixir writes types."""
    assert python_type(annotation) == python
    assert elixir_type(annotation) == elixir


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        (Literal["b", "a", 1, True], ("b", "a", "1", "true")),
        (Colour, ("red", "5", "true")),
        (Colour | None, ("red", "5", "true")),
        (Literal["x", None], ("x",)),  # noqa: PYI061 - both spellings
        (Annotated[Literal["x"], "y"], ("x",)),
        (Literal["x", "y"], ("x", "y")),
        (Literal["x"] | int, ()),
        (str, ()),
        (Any, ()),
        (None, ()),
        (list[Literal["x"]], ()),
        (Literal[Colour.RED], ("red",)),
    ],
)
def test_T027_allowed_values(annotation: Any, values: tuple[str, ...]) -> None:
    """In the order of the declaration; a type that allows anything else allows anything."""
    assert allowed_values(annotation) == values
