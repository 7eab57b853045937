"""Reads and writes protobuf's wire format: contents with their size, and the fields of a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from invoker.codecs.varint import SHORT, VARINTS, read_varint, varint

_MOST_FIELDS: Final = 1000
"""The most fields of a message. The messages that are read here have at most seven; senders may repeat them."""


def sized(content: bytes) -> bytes:
    """The content with its size in front, as protobuf writes a field of bytes."""
    size = len(content)
    return (VARINTS[size] if size < SHORT else varint(size)) + content


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message: number, wire type, and the content: a number for wire type 0, bytes for the others.

    Raises:
        ValueError: The data are not a message.
    """
    at, end, left = 0, len(data), _MOST_FIELDS
    while at < end:
        if not left:
            raise ValueError(f"it has more than {_MOST_FIELDS} fields")
        left -= 1
        tag, at = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            found, at = read_varint(data, at)
            yield number, kind, found
            continue
        if kind == 2:
            size, at = read_varint(data, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"it has a field of the wire type {kind}, which no message here has")
        if number == 0 or at + size > end:
            raise ValueError("it ends within a field" if number else "it has a field without a number")
        yield number, kind, data[at : at + size]
        at += size


_FIXED: Final = {1: 8, 5: 4}
