"""What stands around a type: a name (``type X = ...`` of Python 3.12, a `TypeAliasType`, a NewType), or marks."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, Final

UNIONS: Final = (typing.Union, types.UnionType)
"""The origins of a union."""


def bare(type_: Any) -> Any:
    """The type without the names and marks around it; types inside it keep theirs."""
    while typing.get_origin(type_ := unaliased(type_)) is typing.Annotated:
        type_ = type_.__origin__
    return type(None) if type_ is None else type_


def notes(type_: Any) -> Iterator[Any]:
    """The marks around a type, whatever names stand between them."""
    while typing.get_origin(type_ := unaliased(type_)) is typing.Annotated:
        yield from type_.__metadata__
        type_ = type_.__origin__


def unaliased(type_: Any) -> Any:
    """The type that is named by a NewType or a named type (``type X = ...`` of Python 3.12, also with arguments)."""
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
    """The value of a named type; with typing_extensions this is a text if it contains its own name."""
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
    """Whether it is a TypedDict of `typing` or `typing_extensions`, which differ before Python 3.13."""
    return type(cls).__name__ == "_TypedDictMeta"


def is_unpack(annotation: Any) -> bool:
    """Whether it is ``Unpack[...]`` of `typing` or `typing_extensions`, which differ before Python 3.12."""
    return getattr(typing.get_origin(annotation), "_name", None) == "Unpack"


def stood_for(variable: typing.TypeVar) -> Any:
    """What a type variable may be where nothing says what it is: one of its constraints, its bound, or anything."""
    if variable.__constraints__:
        return typing.Union[variable.__constraints__]  # noqa: UP007 - made at run time
    return variable.__bound__ or Any


def hints_of(cls: Any) -> dict[str, Any]:
    """Names and annotations of the fields of a class, with marks.

    Raises:
        Exception: An annotation cannot be resolved.
    """
    several = [one for base in cls.__mro__ for one in getattr(base, "__type_params__", ())]
    # If annotations are texts, the parameters of `class Box[T]` are names that can only be resolved here.
    local = {one.__name__: one for one in several} or None
    return typing.get_type_hints(cls, localns=local, include_extras=True)
