"""Reads lists and dicts: the content of ListValue, Struct and Value, and the tagged objects in them (T-102 to T-105).

The number of elements is checked first (T-053): if so many bytes look like the start of an element that there may be
too many, the elements are counted before any object is built. The depth is checked before each level.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
from collections.abc import Callable
from struct import unpack_from
from typing import Any, Final

from invoker.codecs.anyvalue import numbers
from invoker.codecs.anyvalue.errors import TooComplex
from invoker.codecs.anyvalue.names import MOST_ELEMENTS, MOST_LEVELS, PROTOBUF, STRUCT, TAG, Opaque
from invoker.codecs.anyvalue.wire import fields
from invoker.codecs.varint import SHORT, read_varint

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def read_list(content: bytes) -> list[Any]:
    """The content of a ListValue.

    Raises:
        TooComplex: The list is larger than a value may be.
        ValueError: The content is not a ListValue.
    """
    _check_elements(content, _LIST)
    made = _list(content, 1)
    return list(map(_settled, made)) if _TAG in content else made


def read_struct(content: bytes) -> dict[str, Any]:
    """The content of a Struct as a dict, which itself is never treated as a tagged object.

    Raises:
        TooComplex: The struct is larger than a value may be.
        ValueError: The content is not a Struct.
    """
    _check_elements(content, _STRUCT)
    made = _struct(content, 1)
    return _parts(made) if _TAG in content else made


def read_value(content: bytes) -> Any:
    """The content of a Value.

    Raises:
        TooComplex: The value is too large.
        ValueError: The content is not a Value, has no kind, or has an unknown field.
    """
    if not content:
        raise ValueError("it has no kind")
    _check_elements(content, _VALUE)
    made = _value(content, 0, len(content), 0)
    return _settled(made, is_whole=True) if _TAG in content else made


def _list(content: bytes, level: int) -> list[Any]:
    if level > MOST_LEVELS:
        raise _too_deep()
    if len(content) >= 11 * numbers.MANY and (found := numbers.read(content)) is not None:
        return found
    made: list[Any] = []
    add = made.append
    at, end = 0, len(content)
    while at < end:
        size = content[at + 1] if at + 3 < end else SHORT
        if content[at] == 0x0A and size < SHORT and content[at + 2] == 0x1A and content[at + 3] == size - 2:
            start, at = at + 4, at + 2 + size  # a short text; most long lists that do not hold numbers hold such texts
            if at > end:
                raise ValueError("it ends within a field")
            add(str(content[start:at], "utf-8"))
            continue
        start, at = _sized(content, at)
        add(_value(content, start, at, level))
    return made


def _struct(content: bytes, level: int) -> dict[str, Any]:
    if level > MOST_LEVELS and not (level == MOST_LEVELS + 1 and _TAG in content):
        raise _too_deep()  # a tagged object does not count as a level
    made: dict[str, Any] = {}
    at, end = 0, len(content)
    while at < end:
        start, at = _sized(content, at)
        key = ""
        value: Any = None
        while start < at:  # an entry of a map: its key is field 1, its value is field 2
            tag = content[start]
            if tag not in (0x0A, 0x12):
                raise ValueError("an entry of a Struct has a field that is neither its key nor its value")
            first, start = _sized(content, start, tag)
            if start > at:
                raise ValueError("an entry of a Struct ends within its key or its value")
            if tag == 0x0A:
                key = str(content[first:start], "utf-8")
            else:
                value = _value(content, first, start, level)
        made[key] = value
    return made


def _sized(content: bytes, at: int, tag: int = 0x0A) -> tuple[int, int]:
    """The indexes at which the content of a field of bytes with this tag begins and ends."""
    if content[at] != tag:
        raise ValueError("a ListValue or a Struct has an unknown field")
    if at + 1 >= len(content):
        raise ValueError("it ends within a field")
    size = content[at + 1]
    start = at + 2
    if size >= SHORT:
        size, start = read_varint(content, at + 1)
    if start + size > len(content):
        raise ValueError("it ends within a field")
    return start, start + size


def _value(content: bytes, at: int, end: int, level: int) -> Any:
    if at == end:
        return None
    tag = content[at]
    if tag == 0x11 and end - at == 9:
        return numbers.read_one(unpack_from("<d", content, at + 1)[0])
    if tag in _SIZED and end - at > 1:
        start, stop = _sized(content, at, tag)
        if stop == end:
            if tag == 0x1A:
                return str(content[start:end], "utf-8")
            if tag == 0x32:
                return _list(content[start:end], level + 1)
            return _struct(content[start:end], level + 1)
    elif tag in (0x08, 0x20) and end - at == 2 and content[at + 1] < SHORT:
        return bool(content[at + 1]) if tag == 0x20 else None
    return _unusual(content[at:end], level)


def _unusual(content: bytes, level: int) -> Any:
    """A Value with several fields, of which the last counts, or with a varint that is longer than necessary."""
    made: Any = None
    for number, kind, found in fields(content):
        if _KINDS.get(number) != kind:
            raise ValueError("a Value has an unknown field")
        if isinstance(found, int):
            made = bool(found) if number == 4 else None
        elif number == 2:
            made = numbers.read_one(unpack_from("<d", found)[0])
        elif number == 3:
            made = str(found, "utf-8")
        elif number == 5:
            made = _struct(found, level + 1)
        else:
            made = _list(found, level + 1)
    return made


def _settled(value: Any, *, is_whole: bool = False) -> Any:
    """The value with its tagged objects replaced by the values that they represent, from the outside in (T-103)."""
    if type(value) is list:
        return list(map(_settled, value))
    if type(value) is not dict:
        return value
    url = value.get(TAG)
    if is_whole or len(value) != 2 or "value" not in value or not isinstance(url, str):
        return _parts(value)
    content = value["value"]
    if url == STRUCT and type(content) is dict:
        return _parts(content)
    if not isinstance(content, str):
        return _parts(value)
    name = url.rpartition("/")[2]
    if (reader := _TAGGED.get(name)) is not None:
        return reader(content)
    return Opaque(content, name.removeprefix("python.")) if name.startswith("python.") else value


def _parts(value: dict[str, Any]) -> dict[str, Any]:
    return {key: _settled(one) for key, one in value.items()}


def _duration(text: str) -> dt.timedelta:
    found = _SECONDS(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not a Duration such as 1.5s")
    sign, seconds, fraction = found.groups(default="")
    span = dt.timedelta(seconds=int(seconds), microseconds=int(fraction[:6].ljust(6, "0")))
    return -span if sign else span


def _check_elements(content: bytes, kind: int) -> None:
    """Refuse too many elements before one is built.

    Each element begins with the byte 0x0A, so few such bytes prove that there are few elements.
    """
    if len(content) > 2 * MOST_ELEMENTS and content.count(b"\n") > MOST_ELEMENTS:
        _count(content, kind)


def _count(content: bytes, kind: int) -> None:
    """Walk the content and count its elements; malformed content is left to the reader.

    Only fields that may hold a container are walked, and only the enclosing containers are kept meanwhile.
    """
    waiting = [(kind, 0, len(content), 0)]
    count = 0
    try:
        while waiting:
            kind, at, end, level = waiting.pop()
            while at < end:
                tag, size, start = content[at], content[at + 1], at + 2
                if tag in _BARE:
                    at = at + 9 if tag == 0x11 else read_varint(content, at + 1)[1]
                    continue
                if size >= SHORT:
                    size, start = read_varint(content, at + 1)
                at = start + size
                if kind < _VALUE:
                    count += 1
                    if count > MOST_ELEMENTS:
                        raise TooComplex(f"has more than {MOST_ELEMENTS} elements")
                    if size <= 2 or (content.find(_OF_DICTS, start, at) < 0 and content.find(_OF_LISTS, start, at) < 0):
                        continue  # it cannot hold a container
                if (inside := _INSIDE.get((kind, tag))) is not None:
                    waiting.append((kind, at, end, level))  # the walk continues after this container later
                    kind, at, end, level = inside, start, min(at, end), level + (kind == _VALUE)
                    if level > MOST_LEVELS + 1:
                        raise _too_deep()
    except IndexError:
        raise ValueError("it ends within a field") from None


def _too_deep() -> TooComplex:
    return TooComplex(f"is nested in more than {MOST_LEVELS} lists and dicts")


_LIST, _STRUCT, _VALUE, _ENTRY = range(4)
_INSIDE: Final = {
    (_LIST, 0x0A): _VALUE,
    (_STRUCT, 0x0A): _ENTRY,
    (_ENTRY, 0x12): _VALUE,
    (_VALUE, 0x2A): _STRUCT,
    (_VALUE, 0x32): _LIST,
}
"""The kind of a field's content, by the message and the tag of the field."""

_OF_DICTS: Final = b"\x2a"
_OF_LISTS: Final = b"\x32"
"""The tags of a Value that is a container; content without either byte has no container."""
_BARE: Final = frozenset((0x08, 0x11, 0x20))
_SIZED: Final = frozenset((0x1A, 0x2A, 0x32))
_KINDS: Final = {1: 0, 2: 1, 3: 2, 4: 0, 5: 2, 6: 2}
_SECONDS: Final = re.compile(r"(-)?(\d{1,12})(?:\.(\d{1,9}))?s").fullmatch
_TAG: Final = TAG.encode()
_TAGGED: Final[dict[str, Callable[[str], Any]]] = {
    f"{PROTOBUF}Int64Value": int,
    f"{PROTOBUF}UInt64Value": int,
    "python.int": int,
    f"{PROTOBUF}BytesValue": lambda text: binascii.a2b_base64(text.encode()),
    f"{PROTOBUF}Timestamp": dt.datetime.fromisoformat,
    f"{PROTOBUF}Duration": _duration,
}
