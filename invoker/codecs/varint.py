"""Whole numbers as protobuf writes them; used for the lengths of frames that are written by hand."""

from __future__ import annotations

from typing import Final

SHORT: Final = 128
"""Numbers below it are one byte."""

VARINTS: Final = [bytes((one,)) for one in range(SHORT)]


def varint(number: int) -> bytes:
    """A number of at most 64 bits, without a sign."""
    if number < SHORT:
        return VARINTS[number]
    made = bytearray()
    while number >= SHORT:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)
