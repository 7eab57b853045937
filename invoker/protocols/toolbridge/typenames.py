"""Writes types for a ToolSpec, in the notation of Python's `typing` and in that of Elixir (T-025, T-026)."""

from __future__ import annotations

import collections
import enum
import inspect
import typing
from collections import abc
from typing import Any, Final

from invoker.codecs.annotations import is_structured
from invoker.codecs.standins import is_recursive
from invoker.fields.aliases import UNIONS, bare

_EMPTY: Final = inspect.Parameter.empty
_SCALARS: Final = (str, int, float, bool, type(None))
_CAPITALS: Final = {list: "List", dict: "Dict", tuple: "Tuple", set: "Set", frozenset: "FrozenSet", type: "Type"} | {
    collections.deque: "Deque",
    collections.OrderedDict: "OrderedDict",
}
_LISTS: Final = (
    *(list, set, frozenset, collections.deque, abc.Iterable, abc.Collection),
    *(abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet),
)
_MAPS: Final = (dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict)
_ELIXIR: Final = {str: "binary", bytes: "binary", bytearray: "binary", memoryview: "binary"} | {
    int: "integer",
    float: "float",
    bool: "boolean",
    type(None): "nil",
}


def python_type(annotation: Any) -> str:
    """The annotation in the notation of `typing`: ``List[str]``, ``Optional[int]``."""
    annotation = _plain(annotation)
    if annotation in (_EMPTY, Any, object):
        return "Any"
    if annotation is type(None):
        return "None"
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in UNIONS:
        members = [python_type(one) for one in args if one is not type(None)]
        text = members[0] if len(members) == 1 else f"Union[{', '.join(members)}]"
        return f"Optional[{text}]" if type(None) in args else text
    if origin is typing.Literal:
        return f"Literal[{', '.join(_literal(one) for one in args)}]"
    if origin is None:
        return _CAPITALS.get(annotation) or _named(annotation)
    inside = ", ".join("..." if one is ... else python_type(one) for one in args if not isinstance(one, list))
    return f"{_CAPITALS.get(origin) or _named(origin)}[{inside}]"


def elixir_type(annotation: Any) -> str:
    """The annotation as an Elixir type: ``[binary]``, ``integer | nil``."""
    annotation = _plain(annotation)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in UNIONS:
        nil = [one for one in args if one is type(None)]
        members = dict.fromkeys(elixir_type(one) for one in (*(one for one in args if one not in nil), *nil))
        return "any" if "any" in members else " | ".join(members)
    if origin is typing.Literal:
        return " | ".join(dict.fromkeys(elixir_type(type(_value(one))) for one in args))
    kind = origin or annotation
    if not isinstance(kind, type):
        return "any"
    if issubclass(kind, enum.Enum):
        return " | ".join(dict.fromkeys(elixir_type(type(one.value)) for one in kind)) or "any"
    if kind in _ELIXIR:
        return _ELIXIR[kind]
    if kind is tuple:
        if len(args) == 2 and args[1] is ...:
            return f"[{elixir_type(args[0])}]"
        return f"{{{', '.join(elixir_type(one) for one in args)}}}" if args else "{..}"
    if kind in _LISTS:
        return f"[{elixir_type(args[0]) if args else 'any'}]"
    return "map" if kind in _MAPS or is_structured(kind) else "any"


def allowed_values(annotation: Any) -> tuple[str, ...]:
    """The values that `typing.Literal` or an Enum allows, as texts in the order of declaration.

    For other types the result is empty.
    """
    annotation = _plain(annotation)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in UNIONS:
        found = [allowed_values(one) for one in args if one is not type(None)]
        return tuple(dict.fromkeys(value for one in found for value in one)) if found and all(found) else ()
    if origin is typing.Literal:
        return tuple(dict.fromkeys(spelled(one) for one in args if one is not None))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return tuple(spelled(one.value) if isinstance(one.value, _SCALARS) else one.name for one in annotation)
    return ()


def spelled(value: Any) -> str:
    """A value as text, for comparison with the allowed values (T-047)."""
    value = _value(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(one: Any) -> Any:
    return one.value if isinstance(one, enum.Enum) else one


def _plain(annotation: Any) -> Any:
    """An annotation without aliases and ``Annotated``; a recursive alias is left as it is."""
    return annotation if is_recursive(annotation) else bare(annotation)


def _named(kind: Any) -> str:
    name: str = getattr(kind, "__qualname__", None) or getattr(kind, "__name__", None) or str(kind)
    return name.rpartition("<locals>.")[2]


def _literal(value: Any) -> str:
    return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)
