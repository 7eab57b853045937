"""`unpack`: converts a serialised ``google.protobuf.Any`` to a Python value (T-098 to T-112).

Peers use different prefixes in type URLs, so only the part after the last slash counts (T-107). Snakepit sends JSON
under protobuf's type names, so the content is examined there (T-112).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from struct import unpack as read
from typing import Any, Final

from invoker.codecs.anyvalue import trees
from invoker.codecs.anyvalue.errors import BadAny, MissingLibrary, TooComplex
from invoker.codecs.anyvalue.foreign import parse_json, snakepit
from invoker.codecs.anyvalue.frames import PARQUET, from_parquet
from invoker.codecs.anyvalue.names import Opaque
from invoker.codecs.anyvalue.wire import fields
from invoker.codecs.varint import SHORT, read_varint

_TEXT_URL: Final = b"type.googleapis.com/google.protobuf.StringValue"
_SHORT_TEXTS: Final = [b"\n\x2f%b\x12%c\n%c" % (_TEXT_URL, size + 2, size) for size in range(SHORT - 2)]
"""The bytes before a text of each length, in a StringValue without other fields."""
_AT: Final = len(_SHORT_TEXTS[0])


def unpack(data: bytes) -> Any:
    """The value of a serialised ``google.protobuf.Any``.

    Raises:
        BadAny: The bytes are not an Any, its type is unknown, or its content is not of that type.
    """
    size = len(data) - _AT
    if 0 < size < len(_SHORT_TEXTS) and data.startswith(_SHORT_TEXTS[size]):  # most values have this form
        type_url, content = _TEXT_URL, data[_AT:]
        reader: Callable[[bytes], Any] | None = bytes.decode
    else:
        type_url, content = _parts(data)
        reader = _READERS.get(type_url)
    try:
        if reader is not None:
            return reader(content)
        return _named(type_url.decode(), content)
    except TooComplex as error:
        raise BadAny(str(error), _shown(type_url), code="too_complex") from None
    except MissingLibrary as error:
        raise BadAny(str(error), _shown(type_url), code="missing_dependency") from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise BadAny(f"cannot be read: {error}", _shown(type_url)) from error


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """The type URL and the content."""
    if len(data) > 3 and data[0] == 0x0A and data[1] < SHORT:
        at = 2 + data[1]
        if len(data) == at:
            return data[2:at], b""
        if len(data) > at + 1 and data[at] == 0x12:
            size = data[at + 1]
            start = at + 2
            if size >= SHORT:
                try:
                    size, start = read_varint(data, at + 1)
                except ValueError as error:
                    raise BadAny(f"cannot be read: {error}") from None
            if len(data) == start + size:
                return data[2:at], data[start:]
    type_url = content = b""
    try:  # the fields come in another order, or there are fields of a later version
        for number, kind, found in fields(data):
            if kind == 2 and number == 1:
                type_url = bytes(found)
            elif kind == 2 and number == 2:
                content = bytes(found)
    except ValueError as error:
        raise BadAny(f"cannot be read: {error}") from None
    return type_url, content


def _named(type_url: str, content: bytes) -> Any:
    """The value of a type whose URL does not have one of the usual forms."""
    name = type_url.rpartition("/")[2]
    if (reader := _BY_NAME.get(name)) is not None:
        return reader(content)
    if name.startswith("python."):
        return Opaque(_text(content), name.removeprefix("python."))
    if (reader := snakepit(name)) is not None:
        return reader(content)
    if not type_url and not content:
        return None  # T-098
    if not type_url:
        raise BadAny("has no type URL")
    raise BadAny("is of an unknown type", _shown(type_url.encode()))


def _shown(type_url: bytes) -> str:
    text = type_url.decode(errors="backslashreplace")
    return text if len(text) <= 120 else f"{text[:120]}..."


def _single(content: bytes, kind: int) -> int | bytes | None:
    """Field 1, the only field of a wrapper.

    If it occurs several times, the last one counts; other fields are ignored.
    """
    found: int | bytes | None = None
    for number, wire, value in fields(content):
        if number == 1:
            if wire != kind:
                raise ValueError(f"its field 1 has the wire type {wire} instead of {kind}")
            found = value
    return found


def _none(_: bytes) -> None:
    return None


def _bool(content: bytes) -> bool:
    return bool(_single(content, 0))


def _int64(content: bytes) -> int:
    if len(content) == 2 and content[0] == 0x08 and content[1] < SHORT:
        return content[1]
    found = _unsigned(content)
    return found - (1 << 64) if found >> 63 else found


def _int32(content: bytes) -> int:
    found = _unsigned(content) & 0xFFFFFFFF
    return found - (1 << 32) if found >> 31 else found


def _uint32(content: bytes) -> int:
    return _unsigned(content) & 0xFFFFFFFF


def _unsigned(content: bytes) -> int:
    if content and content[0] == 0x08:
        found, at = read_varint(content, 1)
        if at == len(content):
            return found
    return int(_single(content, 0) or 0)


def _double(content: bytes) -> float:
    if len(content) == 9 and content[0] == 0x09:
        return float(read("<d", content[1:])[0])
    found = _single(content, 1)
    return float(read("<d", found)[0]) if isinstance(found, bytes) else 0.0


def _float(content: bytes) -> float:
    found = _single(content, 5)
    return float(read("<f", found)[0]) if isinstance(found, bytes) else 0.0


def _string(content: bytes) -> Any:
    """T-112: a StringValue is text, or JSON of Snakepit."""
    if content and content[0] != 0x0A:
        return parse_json(content)
    return _text(content)


def _text(content: bytes) -> str:
    return str(_bytes(content), "utf-8")


def _bytes(content: bytes) -> bytes:
    if len(content) > 1 and content[0] == 0x0A:
        size, at = (content[1], 2) if content[1] < SHORT else read_varint(content, 1)
        if len(content) == at + size:
            return content[at:]
    found = _single(content, 2)
    return found if isinstance(found, bytes) else b""


def _value(content: bytes) -> Any:
    """T-112: a Value, or Snakepit's JSON."""
    try:
        return trees.read_value(content)
    except TooComplex:
        raise
    except ValueError:
        return parse_json(content)


def _timestamp(content: bytes) -> dt.datetime:
    return trees.EPOCH + _span(content)


def _span(content: bytes) -> dt.timedelta:
    parts = {1: 0, 2: 0}
    for number, kind, found in fields(content):
        if kind == 0 and number in parts:
            assert isinstance(found, int), "varints are"
            parts[number] = found - (1 << 64) if found >> 63 else found
    return dt.timedelta(seconds=parts[1], microseconds=parts[2] // 1000)


def _frame(content: bytes) -> Any:
    return from_parquet(content if content.startswith(PARQUET) else _bytes(content))


def _python_int(content: bytes) -> int:
    return int(_text(content))


_PROTOBUF: Final[dict[str, Callable[[bytes], Any]]] = {
    "NullValue": _none,
    "Empty": _none,
    "BoolValue": _bool,
    "Int32Value": _int32,
    "Int64Value": _int64,
    "UInt32Value": _uint32,
    "UInt64Value": _unsigned,
    "DoubleValue": _double,
    "FloatValue": _float,
    "StringValue": _string,
    "BytesValue": _bytes,
    "Value": _value,
    "ListValue": trees.read_list,
    "Struct": trees.read_struct,
    "Timestamp": _timestamp,
    "Duration": _span,
}
_BY_NAME: Final = {
    **{f"google.protobuf.{name}": reader for name, reader in _PROTOBUF.items()},
    "pandas.DataFrame": _frame,
    "python.int": _python_int,
}
_READERS: Final = {f"type.googleapis.com/{name}".encode(): reader for name, reader in _BY_NAME.items()}
