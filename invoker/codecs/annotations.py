"""Finds the parts of an annotation, the members of a union or the fields of a class, for all codecs."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from typing import Any

from invoker.codecs.members import members_of
from invoker.fields.aliases import UNIONS, bare, is_typed_dict


def is_any(type_: Any) -> bool:
    """Whether the annotation leaves the choice of the type to the codec."""
    return type_ is Any or type_ is object


def members(type_: Any) -> tuple[Any, ...]:
    """The types that the annotation allows: members of a union, without Annotated, aliases and NewTypes around them."""
    return tuple(bare(one) for one in leaves(type_))


def leaves(type_: Any) -> tuple[Any, ...]:
    """The members of a union, with their metadata of ``Annotated``."""
    inner = bare(type_)
    if typing.get_origin(inner) not in UNIONS:
        return (type_,)
    return tuple(one for arg in typing.get_args(inner) for one in leaves(arg))


def fields(type_: Any) -> Mapping[str, Any] | None:
    """The annotations of a class with fields, by their names in JSON and their own; None for other classes."""
    for one in members(type_):
        cls = typing.get_origin(one) or one
        if isinstance(cls, type) and is_structured(cls):
            try:
                found = members_of(cls, typing.get_args(one))
            except (NameError, TypeError):
                return {}
            each = found.properties if found is not None else ()
            return {name: one.annotation for one in each for name in (one.name, one.own)}
    return None


def is_array(type_: Any) -> bool:
    """Whether the annotation is a numpy array, alone or in a union; if so, numpy is already imported."""
    if "numpy" not in sys.modules:
        return False
    from invoker.tensors import array_type

    return any(array_type(one) is not None for one in members(type_))


def is_structured(cls: type) -> bool:
    """Whether values of this class are objects with named fields."""
    marks = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__", "__pydantic_fields__")
    return any(hasattr(cls, mark) for mark in marks) or is_typed_dict(cls)
