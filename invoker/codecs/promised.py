"""`check_promise`: checks whether a value can have the type that the return annotation declares.

Theory. Only the value's own class is compared, never the values inside: a list may be ``list[int]``, whatever it holds.
Classes are compared as type checkers do: subclasses pass, an int is a float, and all bytes-likes are bytes. numpy's
numbers are compared by their kind, and for an array every value passes that the tensor codec can convert. An annotation
that cannot be compared (protocols, names that are only known to type checkers, types that other libraries validate)
passes.

The result depends only on the annotation and the class, so callers check once for each class.
"""

from __future__ import annotations

import enum
import sys
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from invoker.codecs.refusal import spell
from invoker.codecs.typed import BYTES_LIKE, is_any, is_structured, leaves, members
from invoker.errors import EncodeError
from invoker.errors.wording import Place
from invoker.fields.aliases import bare, is_typed_dict, stood_for
from invoker.message import Message

_PROMOTED: Final[dict[type, tuple[type, ...]]] = {float: (int,), complex: (float, int)} | dict.fromkeys(
    BYTES_LIKE, BYTES_LIKE
)
"""For a declared class: other classes that type checkers accept for it."""

_KINDS: Final[dict[str, type]] = {
    "b": bool, "i": int, "u": int, "f": float, "c": complex, "S": bytes, "U": str, "M": datetime, "m": timedelta,
}  # fmt: skip
"""The Python type of numpy's scalars, by the kind of their dtype."""

_MOST_KNOWN: Final = 1000
"""The most remembered results, so that a function that makes new classes all the time cannot fill the memory
(R-011)."""

_known: set[tuple[Any, type]] = set()


def check_promise(type_: Any, value: Any, where: Place) -> None:
    """Refuse a value whose class does not fit the declared type.

    Args:
        type_: The annotation of the output.
        value: The value that the function gave; only its class counts.
        where: The place that begins the text of the error.

    Raises:
        EncodeError: The class does not fit; the text has the declared and the given type and, if it is obvious, the
            fix.
    """
    cls = type(value)
    if cls is type_:
        return
    try:
        if (type_, cls) in _known:
            return
    except TypeError:  # an annotation that cannot be hashed
        _refuse(type_, value, where)
        return
    _refuse(type_, value, where)
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known.add((type_, cls))


def _refuse(type_: Any, value: Any, where: Place) -> None:
    if not _fits(type_, value):
        given = "None" if value is None else spell(type(value))
        declared = f" is declared {spell(type_)}, and the function gave {given}"
        raise EncodeError(declared, place=where, hint=_hint(type_, value))


def _fits(type_: Any, value: Any) -> bool:
    if isinstance(value, msgspec.Raw):  # JSON that the author has already encoded
        return True
    return any(_is_array(one, value) or _is_one(bare(one), value) for one in leaves(type_))


def _is_array(said: Any, value: Any) -> bool:
    if "numpy" not in sys.modules:
        return False
    from invoker.tensors import array_type  # the module with the annotation has imported numpy

    if array_type(said) is None:
        return False
    from invoker.tensors.arrays import is_takeable

    return is_takeable(type(value))


def _is_one(type_: Any, value: Any) -> bool:
    """Whether a value may be of a type that is not a union."""
    if is_any(type_):
        return True
    if isinstance(type_, typing.TypeVar):
        return _fits(stood_for(type_), value)
    origin = typing.get_origin(type_)
    if origin is typing.Literal:
        return any(_is_of(type(one), value) for one in typing.get_args(type_))
    if origin is Message:  # a Message in a union; a single one was stripped when the signature was read
        return _fits(typing.get_args(type_)[0], value)
    cls = origin or type_
    if is_typed_dict(cls):
        return isinstance(value, Mapping)
    return not isinstance(cls, type) or _is_of(cls, value)


def _is_of(cls: type, value: Any) -> bool:
    if cls.__module__ == "typing" or getattr(cls, "_is_protocol", False) or cls is Message:
        return True
    try:
        if isinstance(value, (cls, *_PROMOTED.get(cls, ()))):
            return True
    except TypeError:  # isinstance() does not work with this class
        return True
    if hasattr(cls, "__get_pydantic_core_schema__") and not is_structured(cls):
        return True  # a type such as EmailStr only describes a validation; no value is an instance of it
    generic = getattr(cls, "__pydantic_generic_metadata__", None)
    if generic and generic["origin"]:  # pydantic makes Box[int] a subclass of Box
        return isinstance(value, generic["origin"])
    return _is_number(cls, value)


def _is_number(cls: type, value: Any) -> bool:
    """Whether a value is a number of the declared kind, if the declared type or the value is numpy's."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "generic"):
        return False
    is_scalar = isinstance(value, numpy.generic)
    made = _KINDS.get(value.dtype.kind) if is_scalar else type(value)
    wanted = cls
    if issubclass(cls, numpy.generic):
        bases = {numpy.bool_: bool, numpy.integer: int, numpy.floating: float, numpy.number: complex}
        wanted = next((kind for base, kind in bases.items() if issubclass(cls, base)), cls)
    if made is None or (wanted is cls and not is_scalar):
        return False
    return issubclass(made, (wanted, *_PROMOTED.get(wanted, ())))


def _hint(type_: Any, value: Any) -> str:
    """The fix for the value, as the end of an error text; empty if there is no hint."""
    if value is None:
        return f"; declare {spell(type_)} | None if it may give none"
    classes = [typing.get_origin(one) or one for one in members(type_)]
    several = [one for one in classes if isinstance(one, type)]
    for cls in several:
        has_fields = hasattr(cls, "_fields")
        if isinstance(value, dict) and (has_fields or is_structured(cls)):
            return f"; return {spell(cls)}(**...)"
        if isinstance(value, tuple | list) and has_fields:
            return f"; return {spell(cls)}(*...)"
        if isinstance(value, str | int) and issubclass(cls, enum.Enum):
            return f"; return {spell(cls)}(...)"
        if hasattr(value, "tolist") and hasattr(value, "__len__"):  # an array, of any library
            one = cls in (bool, int, float) and getattr(value, "size", 0) == 1
            return "; return value.tolist()" if cls is list else "; return value.item()" if one else ""
    return ""
