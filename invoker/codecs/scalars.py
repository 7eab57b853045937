"""Converts values that are one piece of text, in ``text/plain`` and forms: numbers, booleans, dates and null."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import re
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from invoker.codecs.refusal import choices
from invoker.codecs.support import wants_arrays
from invoker.codecs.typed import BYTES_LIKE, adapter, converter, holds_marks, is_any, members, narrowed

_SHOWN = 60
"""The most characters of a text that an error shows."""

_AS_JSON = "-H 'Content-Type: application/json'"

_TRUTHS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
"""The spellings of booleans; an HTML form sends `on` for a ticked checkbox."""

_NOTHINGS = ("", "null")
_STAMPS = (dt.datetime, dt.date, dt.time)


def reader(type_: Any) -> Callable[[str], Any]:
    """A closure that parses text to this type (R-094); for str it returns the text.

    Numbers, booleans and dates may have white space around them. Empty text is None where that is allowed.

    Raises:
        TypeError: No converter can make this type.
    """
    if is_any(type_):
        return same
    type_ = narrowed(type_, BYTES_LIKE)
    wanted, is_marked = members(type_), holds_marks(type_)
    if str in wanted and not is_marked:
        return same
    takes_none = type(None) in wanted
    if type_ is int:
        return _integer
    if bool in wanted and set(wanted) <= {bool, type(None)} and not is_marked:
        return lambda text: None if takes_none and text.strip().lower() in _NOTHINGS else _truth(text)
    # A strict number of pydantic is read from a text only by the validator for texts.
    convert = adapter(type_).validate_strings if is_marked else converter(type_, is_lax=True)
    # An Enum or a Literal of strings may have members with white space: try the text as it is first.
    is_array = wants_arrays([type_])
    is_text = any(isinstance(one, type) and issubclass(one, str) for one in wanted)

    def read(text: str) -> Any:
        if takes_none and not text:
            return None
        try:
            return convert(text if is_text else text.strip())
        except msgspec.ValidationError as error:
            raise ValueError(_refused(str(error), text, is_array=is_array) + choices(wanted)) from None

    return read


def writer(cls: type) -> Callable[[Any], str] | None:
    """A closure that writes values of this class as text, or None if they are not a single piece of text (R-078)."""
    if issubclass(cls, enum.Enum):
        return lambda value: _spelt(value.value)
    if issubclass(cls, str):
        return same if cls is str else str
    if cls is bool:
        return lambda value: "true" if value else "false"
    if cls is type(None):
        return lambda _: ""
    if issubclass(cls, (int, float, complex, decimal.Decimal, uuid.UUID)):
        return str
    if issubclass(cls, _STAMPS):
        return lambda value: str(value.isoformat())
    if cls.__module__ == "numpy" and not hasattr(cls, "__setitem__") and hasattr(cls, "item"):
        return lambda value: _spelt(value.item(), cls)
    return None


def same(text: Any) -> Any:
    """The text as it is, for annotations that want text."""
    return text


def _integer(text: str) -> int:
    digits = text.strip()
    if not digits.isascii() or "_" in digits:  # int() accepts more than is allowed here: other digits, and underscores
        raise ValueError(_refused("expected an integer", text))
    whole, _, fraction = digits.partition(".")
    try:
        return int(digits if fraction.strip("0") or not fraction else whole)  # 2.0 is an integer
    except ValueError:
        raise ValueError(_refused("expected an integer", text)) from None


def _truth(text: str) -> bool:
    found = _TRUTHS.get(text.strip().lower())
    if found is None:
        raise ValueError(_refused("expected true or false", text))
    return found


def _refused(why: str, text: str, *, is_array: bool = False) -> str:
    """The reason why a text is refused, with a quotation, and without the type, since every text is a str."""
    why = re.sub("^Expected `([^`]+)`, got `str`$", r"expected \1", why)
    if f"'{text}'" in why:
        return why
    met = f"{why}, got {text[:_SHOWN]!r}" + ("..." if len(text) > _SHOWN else "")
    kind = {"{": "object", "[": "array"}.get(text.lstrip()[:1])
    if kind is not None and (
        kind in why.split() or (is_array and kind == "array")
    ):  # the text is JSON, but was sent as plain text
        return f"{met}; send JSON as application/json (with curl: {_AS_JSON})"
    return met


def _spelt(value: Any, came_from: type | None = None) -> str:
    if type(value) is came_from:  # a numpy number of extended precision, which Python has no type for
        return str(value)
    write = writer(type(value))
    if write is None:
        raise TypeError(f"{type(value).__name__} is not a single piece of text")
    return write(value)
