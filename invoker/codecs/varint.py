"""Reads and writes protobuf's varints, for frames that are read or written without the protobuf library."""

from __future__ import annotations

from typing import Final

SHORT: Final = 128
"""Smaller numbers take one byte."""

_LONGEST: Final = 10
"""The most bytes of a number of 64 bits."""

VARINTS: Final = [bytes((one,)) for one in range(SHORT)]


def varint(number: int) -> bytes:
    """Encode an unsigned number of at most 64 bits."""
    if number < SHORT:
        return VARINTS[number]
    made = bytearray()
    while number >= SHORT:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def read_varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """The number at index ``at``, and the index after it. Bits above the 64th are dropped, as protobuf does.

    Raises:
        ValueError: The number is longer than ten bytes, or the data end within it.
    """
    number = shift = 0
    for end in range(at, min(at + _LONGEST, len(data))):
        octet = data[end]
        if octet < SHORT:
            return (number | octet << shift) & 0xFFFFFFFFFFFFFFFF, end + 1
        number |= (octet & 0x7F) << shift
        shift += 7
    raise ValueError("a number is cut off, or too long")
