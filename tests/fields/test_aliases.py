"""`invoker.fields.aliases`: what a named type stands for."""

from __future__ import annotations

import typing
from typing import Annotated, Any, NewType, TypeVar

import pytest
import typing_extensions
from typing_extensions import TypeAliasType

from invoker.fields.aliases import is_typed_dict, is_unpack, stood_for, substituted, unaliased

T = TypeVar("T")
Number = TypeAliasType("Number", Annotated[int, "words"])
Again = TypeAliasType("Again", Number)
Pair = TypeAliasType("Pair", tuple[T, list[T]], type_params=(T,))
Tree = TypeAliasType("Tree", "int | list[Tree]")
Id = NewType("Id", Again)  # type: ignore[valid-newtype]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [(int, int), (Number, Annotated[int, "words"]), (Again, Annotated[int, "words"]), (Id, Annotated[int, "words"]),
     (Pair[str], tuple[str, list[str]]), (Pair[Number], tuple[Number, list[Number]]), (Tree, int | list[Tree]),
     (Any, Any), (list[Number], list[Number])],
    ids=str,
)  # fmt: skip
def test_names_are_resolved_on_the_outside(type_: Any, expected: Any) -> None:
    """One after another, with their arguments; what is within stays."""
    assert unaliased(type_) == expected


def test_type_variables_are_replaced() -> None:
    """Where they stand alone, within, and not at all."""
    assert substituted(T, {T: int}) is int
    assert substituted(dict[str, T], {T: int}) == dict[str, int]
    assert substituted(str, {T: int}) is str
    assert substituted(T, {}) is T


@pytest.mark.parametrize("library", [typing, typing_extensions])
def test_a_typed_dict_is_known_whose_ever_it_is(library: Any) -> None:
    """Of `typing` and of `typing_extensions`, and that it is unpacked."""
    keys = library.TypedDict("keys", {"a": int})
    assert is_typed_dict(keys)
    assert is_unpack(library.Unpack[keys])
    assert not any(is_typed_dict(one) for one in (dict, dict[str, int], int, None))
    assert not any(is_unpack(one) for one in (keys, dict[str, int], list[keys], None))


@pytest.mark.parametrize(
    ("variable", "expected"),
    [(T, Any), (TypeVar("N", bound=int), int), (TypeVar("Some", int, str), int | str)],
)
def test_a_type_variable_stands_for_what_it_allows(variable: TypeVar, expected: Any) -> None:
    """Anything, what it is bound by, or one of several."""
    assert stood_for(variable) == expected
