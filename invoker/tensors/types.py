"""`Tensor` and GraphPipe's twelve types of tensors, in plain Python without numpy.

Source: GraphPipe specification, "Tensor"; docs/reference/graphpipe.md 1.1 and 1.2.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

MAX_RANK: Final = 32
"""The most dimensions of a tensor (G-025)."""


class TensorType(enum.IntEnum):
    """The ids of tensor types, with the names of the schema."""

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
"""Bytes of one element, by type; 0 for NULL and for strings, whose length varies."""

_NAMES: Final = {one: one.name.capitalize() for one in TensorType}


class Tensor(msgspec.Struct, frozen=True):
    """Elements in row-major order.

    Attributes:
        type: The tensor type; never NULL.
        shape: The sizes of the dimensions, none negative; empty for a scalar, which has one element.
        data: The little-endian bytes of all elements, as a flat view, often on the received buffer. For STRING a list
            of the elements, which are bytes of any content.
    """

    type: TensorType
    shape: tuple[int, ...]
    data: memoryview | list[bytes]

    @property
    def size(self) -> int:
        """The size of the elements in bytes; each string counts with four more bytes for its length."""
        data = self.data
        return sum(map(len, data)) + 4 * len(data) if isinstance(data, list) else len(data)


def count_of(shape: Sequence[int]) -> int:
    """How many elements a shape has; never overflows (G-042)."""
    count = 1
    for size in shape:
        count *= size
    return count


def spelled(type_: int) -> str:
    """The name of a type in the schema, such as ``Float32``; ``type 13`` for an id without a name."""
    try:
        return _NAMES[TensorType(type_)]
    except ValueError:
        return f"type {type_}"
