"""Converts numbers in containers: long lists of numbers at once, and integers that a double cannot represent."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from invoker.codecs.anyvalue.names import EXACT, PREFIX, PROTOBUF, TAG

MANY: Final = 16
"""The least length of a list that is converted at once."""

_ITEM: Final = 11
"""The bytes of a number in a ListValue: tag and length of ``values``, tag of ``number_value``, and a double."""
_HEAD: Final = b"\n\t\x11"
_ZEROS: Final = b"\0\0\0\0\0\0\0"


def write(items: list[Any]) -> bytes | None:
    """The content of a ListValue of numbers.

    None if the list has another value, or an int that a double cannot represent.
    """
    kinds = set(map(type, items))
    if kinds == {int}:
        if min(items) < -EXACT or max(items) > EXACT:
            return None
    elif kinds != {float}:
        return None
    count = len(items)
    digits = struct.pack(f"<{count}d", *items)
    made = bytearray(_HEAD + bytes(8)) * count
    for one in range(8):
        made[3 + one :: _ITEM] = digits[one::8]
    return bytes(made)


def read(content: bytes) -> list[Any] | None:
    """The numbers of a ListValue's content; None if it has another value."""
    count, rest = divmod(len(content), _ITEM)
    if rest or any(content[one::_ITEM] != _HEAD[one : one + 1] * count for one in range(3)):
        return None
    digits = bytearray(8 * count)
    for one in range(8):
        digits[one::8] = content[3 + one :: _ITEM]
    found = list(struct.unpack(f"<{count}d", digits))
    is_whole = all(map(float.is_integer, found)) and min(found) >= -EXACT and max(found) <= EXACT
    if is_whole and _ZEROS + b"\x80" not in digits:  # this may be -0.0, which stays a float
        return list(map(int, found))
    return list(map(read_one, found))


def read_one(number: float) -> int | float:
    """The int for a double without a fraction in a container, or the double itself (T-105)."""
    if number.is_integer() and -EXACT <= number <= EXACT and (number or str(number) == "0.0"):
        return int(number)
    return number


def tagged(number: int, decimal: Callable[[int], str]) -> dict[str, str]:
    """The tagged object for an int that a double cannot represent (T-103)."""
    if -0x8000000000000000 <= number < 0x8000000000000000:
        name = f"{PROTOBUF}Int64Value"
    elif 0 < number <= 0xFFFFFFFFFFFFFFFF:
        name = f"{PROTOBUF}UInt64Value"
    else:
        name = "python.int"
    return {TAG: PREFIX + name, "value": decimal(number)}
