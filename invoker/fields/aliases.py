"""Named types: what ``type X = ...`` of Python 3.12, a `TypeAliasType` or a NewType stands for."""

from __future__ import annotations

import sys
import types
import typing
from typing import Any

__all__ = ["hints_of", "substituted", "unaliased"]


def unaliased(type_: Any) -> Any:
    """What a NewType or a named type (``type X = ...`` of Python 3.12, also with arguments) stands for."""
    while True:
        origin = typing.get_origin(type_)
        if isinstance(type_, typing.NewType):
            type_ = type_.__supertype__
        elif "TypeAliasType" in (type(type_).__name__, type(origin).__name__):
            alias = type_ if origin is None else origin
            known = dict(zip(alias.__type_params__, typing.get_args(type_), strict=False))
            type_ = substituted(_evaluated(alias), known)
        else:
            return type_


def _evaluated(alias: Any) -> Any:
    """The value of a named type; typing_extensions takes a text for one that has its own name in it."""
    if not isinstance(alias.__value__, str):
        return alias.__value__
    holder = types.SimpleNamespace(__annotations__={"it": alias.__value__})
    return typing.get_type_hints(holder, vars(sys.modules[alias.__module__]), include_extras=True)["it"]


def substituted(annotation: Any, known: dict[Any, Any]) -> Any:
    """The annotation with type variables replaced."""
    if not known:
        return annotation
    if isinstance(annotation, typing.TypeVar):
        return known.get(annotation, annotation)
    own = getattr(annotation, "__parameters__", ())
    if not own or isinstance(annotation, type):
        return annotation
    return annotation[tuple(known.get(one, one) for one in own)]


def hints_of(cls: Any) -> dict[str, Any]:
    """Names and annotations of the fields of a class, with marks.

    Raises:
        Exception: An annotation cannot be resolved.
    """
    several = [one for base in cls.__mro__ for one in getattr(base, "__type_params__", ())]
    # Where annotations are texts, the parameters of `class Box[T]` are names that nobody else resolves.
    local = {one.__name__: one for one in several} or None
    return typing.get_type_hints(cls, localns=local, include_extras=True)
