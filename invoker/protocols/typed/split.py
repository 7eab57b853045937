"""Cuts a serialised message into its fields without looking into them: each part is a message with one field set.

So each field of a request becomes the payload of an input, and is decoded only when its value is needed.

Source: protobuf encoding, "Message Structure", "Packed Repeated Fields".
"""

from __future__ import annotations

import sys
from typing import Final

from invoker.codecs.varint import read_varint, varint

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SHORT: Final = (_VARINT, _BYTES)
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}
_KEY: Final = 1
"""The number of the field that holds the key of a map entry."""


def split(frame: bytes) -> dict[int, bytes]:
    """The parts of a message by field number; all occurrences of a field make one part.

    Raises:
        ValueError: The frame is not a message.
    """
    found: dict[int, list[bytes]] = {}
    place, size = 0, len(frame)
    # the number of the previous field, and where its first occurrence in this run begins
    before = first = 0
    while place < size:
        begin, tag = place, frame[place]
        # Nearly all tags and lengths have one byte. Such a field of bytes, or a small number, is read without a call.
        if tag < 0x80 and tag > 7 and place + 1 < size and frame[place + 1] < 0x80 and tag & 7 in _SHORT:
            number = tag >> 3
            place += 2 + (frame[place + 1] if tag & 7 == _BYTES else 0)
            if place > size:
                raise ValueError(f"the field {number} is cut off")
        else:
            number, place, _ = _field(frame, place)
        if number != before:
            if before:
                found.setdefault(before, []).append(frame[first:begin])
            before, first = number, begin
    if before:
        found.setdefault(before, []).append(frame[first:])
    return {number: parts[0] if len(parts) == 1 else b"".join(parts) for number, parts in found.items()}


def elements(part: bytes, packing: str, most: int = sys.maxsize) -> list[bytes]:
    """The elements of a repeated field, each as a message of its own.

    Args:
        part: A part of a message, from `split`.
        packing: ``varint``, ``fixed64``, or empty for elements that are never packed.
        most: The function stops after so many elements.

    Raises:
        ValueError: The bytes are not a message.
    """
    found: list[bytes] = []
    place = 0
    while place < len(part) and len(found) < most:
        begin = place
        number, place, content = _field(part, place)
        is_packed = packing and part[begin] & 7 == _BYTES
        if not is_packed:
            found.append(part[begin:place])
            continue
        wire = _VARINT if packing == "varint" else _FIXED64
        tag = varint(number << 3 | wire)
        while content < place and len(found) < most:
            end = read_varint(part, content)[1] if wire == _VARINT else content + 8
            if end > place:
                raise ValueError("a packed field ends within an element")
            found.append(tag + part[content:end])
            content = end
    return found


def entries(part: bytes) -> dict[str, bytes]:
    """The entries of a map by their key, each as a message of its own; if a key comes again, the last entry counts.

    Args:
        part: A part of a message, from `split`.

    Raises:
        ValueError: The bytes are not a message, or a key is not text.
    """
    found: dict[str, bytes] = {}
    for element in elements(part, ""):
        _, _, content = _field(element, 0)
        key = split(element[content:]).get(_KEY, b"")
        found[key[_field(key, 0)[2] :].decode() if key else ""] = element
    return found


def bytes_field(number: int, content: bytes) -> bytes:
    """Serialise a message with one field, of bytes or of text."""
    return b"".join((varint(number << 3 | _BYTES), varint(len(content)), content))


def _field(frame: bytes, place: int) -> tuple[int, int, int]:
    """Return the number of the field that begins at ``place``, where the field ends, and where its content begins."""
    tag, place = read_varint(frame, place)
    wire, number, content = tag & 7, tag >> 3, place
    if not number:
        raise ValueError("a field has the number 0")
    if wire == _VARINT:
        place = read_varint(frame, place)[1]
    elif wire == _BYTES:
        length, content = read_varint(frame, place)
        place = content + length
    elif wire in _FIXED:
        place += _FIXED[wire]
    else:
        raise ValueError(f"the field {number} has the wire type {wire}")
    if place > len(frame):
        raise ValueError(f"the field {number} is cut off")
    return number, place, content
