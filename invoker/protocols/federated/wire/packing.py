"""Packs vectors into bit strings: element k has the bits from k * b to (k + 1) * b, the lowest bit first (F-096).

Sixty-four elements of b bits fill exactly b words of 64 bits. So for every b, a block of many such rows is packed by
one or two shifts for each of its 64 columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

MODULUS_MIN: Final = 2
MODULUS_MAX: Final = 2**62
_COLUMNS: Final = 64
# a block of 64 x 1024 elements is half a megabyte, which fits into the cache of a core
_ROWS: Final = 1024


def bit_width(modulus: int) -> int:
    """The number of bits of one element.

    Raises:
        ValueError: The modulus is not from 2 to 2^62 (F-090).
    """
    if not MODULUS_MIN <= modulus <= MODULUS_MAX:
        raise ValueError(f"the modulus is {modulus}; it must be from 2 to 2^62")
    return (modulus - 1).bit_length()


def packed_size(modulus: int, length: int) -> int:
    """The size of a packed vector, in bytes."""
    return (length * bit_width(modulus) + 7) // 8


def pack(values: Array, modulus: int) -> bytes:
    """Pack a vector.

    Args:
        values: An array (length,) of uint64, each below the modulus.
        modulus: The modulus, from 2 to 2^62.
    """
    import numpy as np

    bits, length = bit_width(modulus), len(values)
    rows = -(-length // _COLUMNS)
    table = np.zeros((rows, _COLUMNS), np.uint64)
    table.reshape(-1)[:length] = values
    words = np.zeros((rows, bits), np.uint64)
    for start in range(0, rows, _ROWS):
        here, there = table[start : start + _ROWS], words[start : start + _ROWS]
        for column, word, shift in _columns(bits):
            there[:, word] |= here[:, column] << np.uint64(shift)
            if shift + bits > 64:
                there[:, word + 1] |= here[:, column] >> np.uint64(64 - shift)
    return words.astype("<u8", copy=False).tobytes()[: packed_size(modulus, length)]


def unpack(packed: bytes, modulus: int, length: int) -> Array:
    """Unpack a vector.

    Returns:
        An array (length,) of uint64. From an element that is not below the modulus, the modulus is subtracted once, as
            peers do.

    Raises:
        ValueError: A vector of this length has another size.
    """
    import numpy as np

    bits = bit_width(modulus)
    if len(packed) != (wanted := packed_size(modulus, length)):
        raise ValueError(f"{len(packed)} bytes came; {length} elements of {bits} bits take {wanted} bytes")
    rows = -(-length // _COLUMNS)
    padded = np.zeros(rows * bits * 8, np.uint8)
    padded[:wanted] = np.frombuffer(packed, np.uint8)
    words = padded.view("<u8").reshape(rows, bits)
    table = np.empty((rows, _COLUMNS), np.uint64)
    low = np.uint64((1 << bits) - 1)
    for start in range(0, rows, _ROWS):
        here, there = words[start : start + _ROWS], table[start : start + _ROWS]
        for column, word, shift in _columns(bits):
            value = here[:, word] >> np.uint64(shift)
            if shift + bits > 64:
                value |= here[:, word + 1] << np.uint64(64 - shift)
            np.bitwise_and(value, low, out=there[:, column])
    values: Array = table.reshape(-1)[:length]
    if modulus & (modulus - 1):
        np.subtract(values, np.uint64(modulus), out=values, where=values >= modulus)
    return values


def _columns(bits: int) -> Iterator[tuple[int, int, int]]:
    """For each of 64 elements: its number, the word where it begins, and the first bit in that word."""
    return ((column, *divmod(column * bits, 64)) for column in range(_COLUMNS))
