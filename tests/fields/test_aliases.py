"""`invoker.fields.aliases`: what a named type stands for."""

from __future__ import annotations

from typing import Annotated, Any, NewType, TypeVar

import pytest
from typing_extensions import TypeAliasType

from invoker.fields.aliases import substituted, unaliased

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
