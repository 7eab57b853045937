"""Counts the fields of a message before it is parsed.

An empty message in a repeated field takes two bytes on the wire, fifty in memory, and nearly nothing if it is
compressed. So a device could turn 62 kB into 2 GB, and block the event loop for seconds. Fields of nested messages
count, too, and the elements of packed fields count by their bytes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from invoker.codecs.varint import read_varint

_SMALL_BYTES: Final = 64 * 1024
"""A smaller message cannot have too many fields."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}
_TEXTS: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def has_more_fields(frame: bytes | bytearray, type_: Any, most: int) -> bool:
    """Whether a serialised message has more than ``most`` fields; malformed messages are left to the parser.

    Args:
        frame: The serialised message.
        type_: The descriptor of the message.
        most: How many fields and elements of packed fields are allowed.
    """
    if len(frame) <= _SMALL_BYTES:
        return False
    left = most
    todo = [(0, len(frame), type_)]
    try:
        while todo:
            at, end, type_ = todo.pop()
            inner = _inner(type_)
            while at < end:
                left -= 1
                if left < 0:
                    return True
                tag, at = read_varint(frame, at)
                kind = tag & 7
                if kind == _BYTES:
                    size, at = read_varint(frame, at)
                    if (number := tag >> 3) in inner:
                        if (found := inner[number]) is None:
                            left -= size
                        else:
                            todo.append((at, min(end, at + size), found))
                    at += size
                elif kind == _VARINT:
                    _, at = read_varint(frame, at)
                else:
                    at += _SIZES.get(kind, 0)
    except ValueError:
        return False
    return left < 0


@cache
def _inner(type_: Any) -> dict[int, Any]:
    """The fields that contain others, by number, each with the descriptor of its message; None for packed numbers."""
    return {one.number: one.message_type for one in type_.fields if one.type not in _TEXTS}
