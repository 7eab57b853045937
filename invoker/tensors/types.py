"""`Tensor` and its twelve types, as GraphPipe has them; plain Python, numpy is not needed.

Source: GraphPipe specification, "Tensor"; docs/reference/graphpipe.md 1.1 and 1.2.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

MAX_RANK: Final = 32
"""Dimensions of a tensor (G-025)."""


class TensorType(enum.IntEnum):
    """Ids of types; names as the schema has them."""

    NULL = 0
    UINT8 = 1
    INT8 = 2
    UINT16 = 3
    INT16 = 4
    UINT32 = 5
    INT32 = 6
    UINT64 = 7
    INT64 = 8
    FLOAT16 = 9
    FLOAT32 = 10
    FLOAT64 = 11
    STRING = 12


ITEM_BYTES: Final = (0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 0)
"""Bytes of one element, by type; 0 where it has none or any."""

_NAMES: Final = {one: one.name.capitalize() for one in TensorType}


class Tensor(msgspec.Struct, frozen=True):
    """Elements in row-major order.

    Attributes:
        type: Never NULL.
        shape: Sizes of the dimensions, none negative; empty for a scalar, which has one element.
        data: Little-endian bytes of all elements: a flat view, often on the buffer that was received. For STRING a
            list of the elements, bytes of any content.
    """

    type: TensorType
    shape: tuple[int, ...]
    data: memoryview | list[bytes]

    @property
    def size(self) -> int:
        """The size of the elements in bytes; a string counts with the four bytes of its length."""
        data = self.data
        return sum(map(len, data)) + 4 * len(data) if isinstance(data, list) else len(data)


def count_of(shape: Sequence[int]) -> int:
    """How many elements a shape has; exact, however large (G-042)."""
    count = 1
    for size in shape:
        count *= size
    return count


def spelled(type_: int) -> str:
    """The name of a type as the schema spells it, such as ``Float32``; ``type 13`` for an id without a name."""
    try:
        return _NAMES[TensorType(type_)]
    except ValueError:
        return f"type {type_}"
