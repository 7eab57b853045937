"""`pack`: converts a Python value to a serialised ``google.protobuf.Any`` (T-097 to T-104, T-108, T-113, T-114)."""

from __future__ import annotations

import datetime as dt
from binascii import b2a_base64
from collections.abc import Callable, Iterable
from struct import pack as write
from typing import Any, Final

from invoker.codecs.anyvalue import numbers
from invoker.codecs.anyvalue.builtin import natural, timestamp_parts
from invoker.codecs.anyvalue.errors import Unserializable
from invoker.codecs.anyvalue.frames import to_parquet
from invoker.codecs.anyvalue.names import EXACT, MOST_LEVELS, PREFIX, PROTOBUF, STRUCT, TAG, Opaque
from invoker.codecs.anyvalue.wire import sized
from invoker.codecs.typed import is_frame
from invoker.codecs.varint import SHORT, VARINTS, varint


def pack(value: Any) -> bytes:
    """The serialised ``google.protobuf.Any`` of a value.

    Args:
        value: None, bool, int, float, str, bytes, datetime, timedelta, a DataFrame, a numpy array or scalar, or lists,
            tuples, dicts, dataclasses and models of these.

    Raises:
        Unserializable: The value, or something in it, has no form in ``Any``.
    """
    found = _PACKERS.get(type(value))
    return found(value) if found is not None else _other(value)


def packer(cls: type) -> Callable[[Any], bytes]:
    """The function that packs values of a class."""
    return _PACKERS.get(cls, _other)


def _start(name: str) -> bytes:
    return b"\n" + sized((PREFIX + name).encode())


def _none(_: object) -> bytes:
    return _NONE


def _bool(value: bool) -> bytes:  # noqa: FBT001 - the value itself
    return _TRUE if value else _FALSE


def _int(value: int) -> bytes:
    if 0 < value < 128:
        return _INT64_SHORT[value]
    if value == 0:
        return _INT64
    if -0x8000000000000000 <= value < 0x8000000000000000:
        digits = varint(value & 0xFFFFFFFFFFFFFFFF)
        return _INT64 + b"\x12" + VARINTS[len(digits) + 1] + b"\x08" + digits
    if 0 < value <= 0xFFFFFFFFFFFFFFFF:
        digits = varint(value)
        return _UINT64 + b"\x12" + VARINTS[len(digits) + 1] + b"\x08" + digits
    return _PYTHON_INT + b"\x12" + sized(b"\n" + sized(_decimal(value).encode()))


def _float(value: float) -> bytes:
    content = write("<d", value)
    return _DOUBLE + b"\x12\x09\x09" + content if content != _ZERO else _DOUBLE


def _str(value: str) -> bytes:
    content = _utf8(value)
    size = len(content)
    if 0 < size < SHORT - 2:
        return _STRING + b"\x12" + VARINTS[size + 2] + b"\n" + VARINTS[size] + content
    return _text(_STRING, content)


def _text(start: bytes, content: bytes) -> bytes:
    """An Any of a message whose first field has these bytes; an empty one is left out, as protobuf does."""
    return start + b"\x12" + sized(b"\n" + sized(content)) if content else start


def _bytes(value: Any) -> bytes:
    return _text(_BYTES, bytes(value))


def _opaque(value: Opaque) -> bytes:
    return _text(_start(f"python.{value.class_name}"), _utf8(value))


def _list(value: Iterable[Any]) -> bytes:
    content = _items(value, 1)
    return _LIST + b"\x12" + sized(content) if content else _LIST


def _dict(value: dict[Any, Any]) -> bytes:
    content = _entries(value, 1)
    return _STRUCT + b"\x12" + sized(content) if content else _STRUCT


def _timestamp(value: dt.datetime) -> bytes:
    return _moment(_TIMESTAMP, *timestamp_parts(value))


def _duration(value: dt.timedelta) -> bytes:
    seconds, micros = divmod(value, dt.timedelta(seconds=1))
    if seconds < 0 and micros:  # both parts of a Duration have one sign
        seconds, micros = seconds + 1, micros - dt.timedelta(seconds=1)
    return _moment(_DURATION, seconds, micros // dt.timedelta(microseconds=1) * 1000)


def _moment(start: bytes, seconds: int, nanos: int) -> bytes:
    content = b""
    if seconds:
        content += b"\x08" + varint(seconds & 0xFFFFFFFFFFFFFFFF)
    if nanos:
        content += b"\x10" + varint(nanos & 0xFFFFFFFFFFFFFFFF)
    return start + b"\x12" + sized(content) if content else start


def _other(value: Any) -> bytes:
    """A value of a class without a packer of its own, packed as a table or as its built-in class."""
    if is_frame(type(value)):
        return _FRAME + b"\x12" + sized(b"\n" + sized(to_parquet(value)))
    plain = natural(value)
    return _PACKERS[type(plain)](plain)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Unserializable(
            f"is text with the character {error.object[error.start]!a}, half a surrogate pair, which "
            "UTF-8 cannot represent"
        ) from None


def _decimal(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        raise Unserializable(
            f"is an int of {value.bit_length()} bits, which is more than Python converts to text"
        ) from None


def _items(items: Iterable[Any], level: int) -> bytes:
    """Encode the items of a list as the content of a ListValue."""
    if type(items) is not list:
        items = list(items)
    if level > MOST_LEVELS:
        raise _too_deep()
    if len(items) >= numbers.MANY and (content := numbers.write(items)) is not None:
        return content
    parts: list[bytes] = []
    add = parts.append
    try:
        for one in items:
            content = _value(one, level)
            size = len(content)
            add(b"\n" + (VARINTS[size] if size < SHORT else varint(size)) + content)
    except Unserializable as error:
        raise error.within(len(parts)) from None
    return b"".join(parts)


def _entries(entries: dict[Any, Any], level: int) -> bytes:
    """Encode the entries of a dict as the content of a Struct."""
    if level > MOST_LEVELS:
        raise _too_deep()
    parts = []
    key: Any = None
    try:
        for key, one in entries.items():
            name = _key(key)
            content = _value(one, level)
            # protobuf writes both fields of a map's entry, also if they are empty
            entry = b"\n" + sized(name) + b"\x12" + sized(content)
            parts.append(b"\n" + sized(entry))
    except Unserializable as error:
        raise error.within(key) from None
    return b"".join(parts)


def _key(key: Any) -> bytes:
    if not isinstance(key, str):
        raise Unserializable(f"has a key of type {type(key).__name__}; the keys must be str")
    return _utf8(key)


def _value(value: Any, level: int) -> bytes:  # noqa: C901 - one branch for each kind
    """The content of a Value, the form of elements in containers."""
    cls = type(value)
    if cls is str:
        content = _utf8(value)
        size = len(content)
        return b"\x1a" + (VARINTS[size] if size < SHORT else varint(size)) + content
    if cls is bool:
        return b"\x20\x01" if value else b"\x20\x00"
    if cls is int:
        if -EXACT <= value <= EXACT:
            return b"\x11" + write("<d", value)
        return _struct(numbers.tagged(value, _decimal), level)
    if cls is float:
        return b"\x11" + write("<d", value)
    if value is None:
        return b"\x08\x00"
    if cls is dict:
        # the dict looks like a tagged object, so a tag marks it as a plain dict
        if TAG in value and len(value) == 2 and "value" in value:
            value = {TAG: STRUCT, "value": _Untagged(value)}
        return b"\x2a" + sized(_entries(value, level + 1))
    if cls is _Untagged:
        return b"\x2a" + sized(_entries(value, level + 1))
    if cls is list or cls is tuple:
        return b"\x32" + sized(_items(value, level + 1))
    if cls is bytes or cls is bytearray or cls is memoryview:
        return _struct(
            {TAG: f"{PREFIX}{PROTOBUF}BytesValue", "value": b2a_base64(value, newline=False).decode()}, level
        )
    if cls is Opaque:
        return _struct({TAG: f"{PREFIX}python.{value.class_name}", "value": str(value)}, level)
    if cls is dt.datetime:
        timestamp_parts(value)  # raises for a time without a time zone
        text = value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
        return _struct({TAG: f"{PREFIX}{PROTOBUF}Timestamp", "value": text}, level)
    if cls is dt.timedelta:
        return _struct({TAG: f"{PREFIX}{PROTOBUF}Duration", "value": _seconds(value)}, level)
    return _value(natural(value), level)


class _Untagged(dict[Any, Any]):
    """A dict of the user that looks like a tagged object."""


def _struct(entries: dict[str, str], level: int) -> bytes:
    return b"\x2a" + sized(_entries(entries, level))


def _seconds(value: dt.timedelta) -> str:
    """A Duration in the JSON of protobuf: seconds with a fraction, and ``s``."""
    micros = value // dt.timedelta(microseconds=1)
    whole, fraction = divmod(abs(micros), 1_000_000)
    return f"{'-' if micros < 0 else ''}{whole}.{fraction:06d}s"


def _too_deep() -> Unserializable:
    return Unserializable(f"is nested in more than {MOST_LEVELS} lists and dicts, or contains itself")


_INT64: Final = _start(f"{PROTOBUF}Int64Value")
_UINT64: Final = _start(f"{PROTOBUF}UInt64Value")
_DOUBLE: Final = _start(f"{PROTOBUF}DoubleValue")
_STRING: Final = _start(f"{PROTOBUF}StringValue")
_BYTES: Final = _start(f"{PROTOBUF}BytesValue")
_LIST: Final = _start(f"{PROTOBUF}ListValue")
_STRUCT: Final = _start(f"{PROTOBUF}Struct")
_TIMESTAMP: Final = _start(f"{PROTOBUF}Timestamp")
_DURATION: Final = _start(f"{PROTOBUF}Duration")
_PYTHON_INT: Final = _start("python.int")
_FRAME: Final = _start("pandas.DataFrame")
_NONE: Final = _start(f"{PROTOBUF}Value") + b"\x12\x02\x08\x00"
_FALSE: Final = _start(f"{PROTOBUF}BoolValue")
_TRUE: Final = _FALSE + b"\x12\x02\x08\x01"
_INT64_SHORT: Final = [_INT64 + b"\x12\x02\x08" + VARINTS[one] for one in range(128)]
_ZERO: Final = bytes(8)

_PACKERS: Final[dict[type, Callable[[Any], bytes]]] = {
    bool: _bool,
    type(None): _none,
    int: _int,
    float: _float,
    str: _str,
    bytes: _bytes,
    bytearray: _bytes,
    memoryview: _bytes,
    list: _list,
    tuple: _list,
    dict: _dict,
    dt.datetime: _timestamp,
    dt.timedelta: _duration,
    Opaque: _opaque,
}
