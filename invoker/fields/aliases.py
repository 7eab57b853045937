"""Unwraps types: from type aliases (``type X = ...`` of Python 3.12, `TypeAliasType`), NewTypes and ``Annotated``."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, Final

UNIONS: Final = (typing.Union, types.UnionType)
"""The origins of a union."""


def bare(type_: Any) -> Any:
    """The type without aliases and ``Annotated`` around it; types inside it are unchanged."""
    while typing.get_origin(type_ := unaliased(type_)) is typing.Annotated:
        type_ = type_.__origin__
    return type(None) if type_ is None else type_


def notes(type_: Any) -> Iterator[Any]:
    """The metadata of all ``Annotated`` around a type, also behind aliases."""
    while typing.get_origin(type_ := unaliased(type_)) is typing.Annotated:
        yield from type_.__metadata__
        type_ = type_.__origin__


def unaliased(type_: Any) -> Any:
    """The type behind a NewType or a type alias (``type X = ...`` of Python 3.12, also with arguments)."""
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
    """The value of a type alias; with typing_extensions it is a text if it refers to the alias itself."""
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


def is_typed_dict(cls: Any) -> bool:
    """Whether a class is a TypedDict of `typing` or `typing_extensions`, which differ before Python 3.13."""
    return type(cls).__name__ == "_TypedDictMeta"


def is_unpack(annotation: Any) -> bool:
    """Whether an annotation is ``Unpack[...]`` of `typing` or `typing_extensions`, which differ before Python 3.12."""
    return getattr(typing.get_origin(annotation), "_name", None) == "Unpack"


def stood_for(variable: typing.TypeVar) -> Any:
    """The type for a type variable without an argument: the union of its constraints, its bound, or Any."""
    if variable.__constraints__:
        return typing.Union[variable.__constraints__]  # noqa: UP007 - made at run time
    return variable.__bound__ or Any


def hints_of(cls: Any) -> dict[str, Any]:
    """The names and annotations of the fields of a class, with ``Annotated``.

    Raises:
        Exception: An annotation cannot be resolved.
    """
    several = [one for base in cls.__mro__ for one in getattr(base, "__type_params__", ())]
    # If annotations are texts, the parameters of `class Box[T]` are names that can only be resolved here.
    local = {one.__name__: one for one in several} or None
    return typing.get_type_hints(cls, localns=local, include_extras=True)
