"""Parses the JSON of a field into a protobuf message, and lets other Python threads run meanwhile.

Theory. protobuf's JSON parser calls `json.loads` once for the whole text. For 4 MB of numbers this takes up to 0.3 s,
during which no other thread of the process runs. Then it calls several functions for each number. So here numbers are
read by Python functions, between which other threads can run, and a repeated field of numbers, texts or booleans is
given to protobuf in slices. protobuf parses all other fields, and values that do not fit. It would turn 1e400 into
infinity within a ``google.protobuf.Value``; this module refuses such a number, as the other codecs do. While protobuf
ignores unknown fields, it also drops unknown names of enum members, so this module checks those names first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from invoker.codecs.exponents import read_constant, read_float
from invoker.codecs.handover import HANDED_OVER
from invoker.fields.spelling import misspelt
from invoker.protocols.typed.calls import EACH, ENTRY

AROUND: Final = {"": b'{"%b":%b}', EACH: b'{"%b":[%b]}', ENTRY: b'{"%b":{"":%b}}'}
"""Templates that turn a part of a message into JSON of the message: a field, an element of a field, or the value of a
map entry."""

_PLAIN, _ELEMENT = AROUND[""], AROUND[EACH]

_SLICE: Final = 16 * 1024

_SHORT_BYTES: Final = 4096
"""A text up to this size is parsed in less time than a thread may hold the GIL anyway."""

_WHOLE: Final = frozenset({int})
_TAKEN: Final[dict[int, frozenset[type]]] = {
    FieldDescriptor.TYPE_DOUBLE: frozenset({int, float}),
    FieldDescriptor.TYPE_BOOL: frozenset({bool}),
    FieldDescriptor.TYPE_STRING: frozenset({str}),
    FieldDescriptor.TYPE_INT32: _WHOLE,
    FieldDescriptor.TYPE_INT64: _WHOLE,
    FieldDescriptor.TYPE_UINT32: _WHOLE,
    FieldDescriptor.TYPE_UINT64: _WHOLE,
}
"""For each type of field, the classes of elements that a message takes just as protobuf's JSON parser does."""


def parse_json(cls: Any, field: str, around: bytes, payload: bytes) -> Any:
    """Parse the JSON of one field and return a message with this field set.

    Args:
        cls: The class of the message.
        field: The name of the field.
        around: One of `AROUND`.
        payload: The JSON; empty if there is none.

    Raises:
        ValueError: The payload is not JSON, or does not fit the field.
    """
    if not payload:
        return cls()
    text = around % (field.encode(), payload)
    if len(text) <= _SHORT_BYTES:
        return _parsed(cls, field, around, text)
    with HANDED_OVER:
        return _parsed(cls, field, around, text)


def _parsed(cls: Any, field: str, around: bytes, text: bytes) -> Any:
    try:
        found, message = _DECODER.decode(str(text, "utf-8")), cls()
        given = found[field]
        names = _names(message.DESCRIPTOR.fields_by_name[field], around)
        if names is not None:
            one = given if around is _PLAIN else given[0] if around is _ELEMENT else given[""]
            if type(one) is dict and not one.keys() <= names.keys():
                _check_spelling(names, one)
        if _holds_enums(message.DESCRIPTOR):
            _check_enums(message.DESCRIPTOR, found)
        if not _is_filled(message, field, given):
            json_format.ParseDict(found, message, ignore_unknown_fields=True)
        return message
    except (json_format.ParseError, ArithmeticError, AttributeError, TypeError) as error:
        raise ValueError(str(error)) from None


def _is_filled(message: Any, field: str, items: Any) -> bool:
    """Fill a repeated field of a message, if the classes of all elements allow it; return whether it was filled."""
    taken = _TAKEN.get(message.DESCRIPTOR.fields_by_name[field].type)
    if taken is None or type(items) is not list:
        return False
    held = getattr(message, field)
    if not hasattr(held, "extend"):  # the field is not repeated
        return False
    for start in range(0, len(items), _SLICE):
        several = items[start : start + _SLICE]
        try:
            is_taken = taken.issuperset(map(type, several))
            held.extend(several if is_taken else ())
        except (ValueError, OverflowError):  # an element is out of range, or a text is not Unicode
            is_taken = False
        if not is_taken:
            message.ClearField(field)
            return False
    return True


@lru_cache(maxsize=512)
def _names(field: FieldDescriptor, around: bytes) -> Mapping[str, str] | None:
    """If a field holds a message, the names of that message's fields, by each JSON key that stands for one.

    None: the field holds no message, or several, or one of protobuf's own messages, which have special forms in JSON.
    """
    inner = field.message_type
    if inner is None or inner.full_name.startswith("google.protobuf."):
        return None
    if inner.GetOptions().map_entry:
        return _names(inner.fields_by_name["value"], _PLAIN) if around == AROUND[ENTRY] else None
    return {key: one.name for one in inner.fields for key in (one.json_name, one.name)}


@lru_cache(maxsize=512)
def _holds_enums(message: Descriptor) -> bool:
    """Whether a field of a message, or of a message within it, is an enum; protobuf's own messages do not count."""
    left, seen = [message], set()
    while left:
        one = left.pop()
        if one not in seen and not one.full_name.startswith("google.protobuf."):
            seen.add(one)
            if any(field.enum_type is not None for field in one.fields):
                return True
            left += [field.message_type for field in one.fields if field.message_type is not None]
    return False


def _check_enums(message: Descriptor, given: Any) -> None:
    """Refuse an unknown name of an enum member, also as an element of a list or as the value of a map entry."""
    if type(given) is not dict or not _holds_enums(message):
        return
    for field in message.fields:
        value = given.get(field.json_name, given.get(field.name))
        inner, kind = field.message_type, field.enum_type
        if inner is not None and inner.GetOptions().map_entry and type(value) is dict:
            entry = inner.fields_by_name["value"]
            value, inner, kind = list(value.values()), entry.message_type, entry.enum_type
        for one in value if type(value) is list else (value,):
            if inner is not None:
                _check_enums(inner, one)
            elif kind is not None and type(one) is str and one not in kind.values_by_name and not _NUMBER(one):
                raise ValueError(f"{one!a:.100} is not a value of {kind.name}")


_NUMBER: Final = re.compile(r"\s*[+-]?\d+\s*").fullmatch


def _check_spelling(names: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """Refuse an unknown key that looks like a missing field's name, misspelt (R-171); protobuf would ignore it."""
    missing = {*names.values()} - {names.get(key) for key in given}
    if found := misspelt([key for key in given if key not in names], sorted(missing)):
        raise ValueError(f"it has {found[0]!a}, which is not a field; did you mean '{found[1]}'?")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has a name twice")
    return made


def _int(text: str) -> int:
    return int(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=read_float, parse_int=_int, parse_constant=read_constant
)
