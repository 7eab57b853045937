"""`Tensor`: a tensor of a scenario, and the ids of element types; numbers are packed by `struct`, without numpy."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from invoker_conformance.texts import preview

_NAMES = (
    "Null",
    "Uint8",
    "Int8",
    "Uint16",
    "Int16",
    "Uint32",
    "Int32",
    "Uint64",
    "Int64",
    "Float16",
    "Float32",
    "Float64",
    "String",
)
FORMS = ("", "B", "b", "H", "h", "I", "i", "Q", "q", "e", "f", "d", "")
"""The format letters of `struct`, by id of the type."""
_SHOWN = 8

UINT8, INT32, INT64, FLOAT16, FLOAT32, FLOAT64, STRING = 1, 6, 8, 9, 10, 11, 12
NUMERIC = range(1, 12)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A valid or invalid tensor.

    Attributes:
        type: The id of the element type.
        shape: The sizes; None: the vector is absent, as is allowed for a scalar.
        data: The numbers, little-endian, in row-major order.
        strings: The elements of the type String.
    """

    type: int
    shape: tuple[int, ...] | None
    data: bytes = b""
    strings: tuple[bytes, ...] = ()

    @property
    def count(self) -> int:
        """The number of elements of the shape."""
        return math.prod(self.shape or ())

    @property
    def values(self) -> list[float]:
        """The numbers of the tensor."""
        return list(struct.unpack(f"<{self.count}{FORMS[self.type]}", self.data))

    def __str__(self) -> str:
        held = [self._shown()] if self.data else []
        if self.strings:
            held.append(f"{', '.join(map(preview, self.strings[:4]))}{', ...' * (len(self.strings) > 4)}")
        return " ".join([f"{spelled(self.type)}{'' if self.shape is None else list(self.shape)}", *held])

    def _shown(self) -> str:
        """The numbers as text if there are few, otherwise the bytes."""
        is_right = 0 < self.type < STRING and len(self.data) == self.count * struct.calcsize(FORMS[self.type])
        if not is_right or self.count > _SHOWN:
            return preview(self.data)
        return f"({', '.join(f'{value:g}' for value in self.values)})"


def spelled(type_: int) -> str:
    """The name of a type."""
    return _NAMES[type_] if 0 <= type_ < len(_NAMES) else f"type {type_}"


def numbers(type_: int, shape: Sequence[int], values: Sequence[float]) -> Tensor:
    """A tensor of numbers."""
    whole = [value if FORMS[type_] in "efd" else int(value) for value in values]
    return Tensor(type_, tuple(shape), struct.pack(f"<{len(values)}{FORMS[type_]}", *whole))


def floats(*values: float, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor of Float32, a vector unless a shape is given."""
    return numbers(FLOAT32, (len(values),) if shape is None else shape, values)


def strings(*values: bytes, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor of String, a vector unless a shape is given."""
    return Tensor(STRING, (len(values),) if shape is None else tuple(shape), strings=values)
