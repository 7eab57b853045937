"""What an annotation names: the members of a union, the fields of a class; asked by all codecs."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

from invoker.fields.aliases import hints_of, unaliased

__all__ = ["bare", "fields", "is_any", "is_structured", "leaves", "members"]

_UNIONS = (typing.Union, types.UnionType)


def is_any(type_: Any) -> bool:
    """Whether the annotation leaves the choice to the codec."""
    return type_ is Any or type_ is object


def members(type_: Any) -> tuple[Any, ...]:
    """What the annotation may be: the members of a union, without Annotated, aliases and NewTypes around them."""
    return tuple(bare(one) for one in leaves(type_))


def leaves(type_: Any) -> tuple[Any, ...]:
    """The members of a union, with what Annotated says of them."""
    inner = bare(type_)
    if typing.get_origin(inner) not in _UNIONS:
        return (type_,)
    return tuple(one for arg in typing.get_args(inner) for one in leaves(arg))


def fields(type_: Any) -> Mapping[str, Any] | None:
    """Names and annotations of a class with fields (pydantic, dataclass, Struct, TypedDict, attrs); None for others."""
    for one in members(type_):
        if isinstance(one, type) and is_structured(one):
            try:
                return hints_of(one)
            except (NameError, TypeError):
                return {}
    return None


def is_structured(cls: type) -> bool:
    """Whether values of this class are objects with named fields."""
    marks = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__", "__pydantic_fields__")
    return (
        any(hasattr(cls, mark) for mark in marks) or type(cls).__name__ == "_TypedDictMeta"
    )  # of `typing_extensions`, too


def bare(type_: Any) -> Any:
    """Strip Annotated, NewType and named types."""
    while typing.get_origin(type_ := unaliased(type_)) is typing.Annotated:
        type_ = type_.__origin__
    return type(None) if type_ is None else type_
