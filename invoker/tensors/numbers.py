"""A fast path for arrays of numbers: does the work of `invoker.tensors.arrays` for a known type and shape.

Most functions take and give arrays of few types and shapes. Checks that depend only on these are made once, so that an
array takes only the time of its elements. Like that module this one imports numpy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from invoker.tensors.arrays import DTYPES, Array, fitted, has_type, to_array, type_of
from invoker.tensors.tables import wrong_length
from invoker.tensors.types import ITEM_BYTES, MAX_RANK, Tensor, TensorType, count_of
from invoker.tensors.wanted import ArrayType
from invoker.tensors.writer import write_tensor

Read = Callable[[bytes], Array]

_SMALL: Final = 4096
"""The most bytes of an array whose tensor is written by this path; for a larger one, the path would save little."""


def reader(type_: TensorType, shape: tuple[int, ...], wanted: ArrayType) -> Read:
    """Make a closure that turns the elements of tensors of one type and shape into the arrays that an annotation wants.

    The closure takes immutable bytes. It raises the errors of `to_array` and `fitted`, and GraphPipeError for a wrong
    number of bytes (E10).
    """
    dtype, size = DTYPES[type_], count_of(shape) * ITEM_BYTES[type_]
    is_right = has_type(dtype, wanted.scalar)

    def read(elements: bytes) -> Array:
        if len(elements) != size:
            raise wrong_length("it", type_, shape, f"{len(elements)} bytes", f"{size}")
        try:
            array: Array = np.ndarray(shape, dtype, elements)
        except (ValueError, OverflowError):
            return fitted(to_array(Tensor(type_, shape, memoryview(elements))), wanted)  # raises the error
        if not array.flags.aligned:
            array = array.copy()
        array.flags.writeable = False
        return array if is_right else fitted(array, wanted)

    return read


def written(array: Array) -> bytes | None:
    """The bytes that `write_tensor` would return for a small array of numbers.

    None for any other value, which `write_tensor` has to write.
    """
    if array.nbytes > _SMALL or (head := _head(array.dtype, array.shape)) is None:
        return None
    return head + array.tobytes()


@functools.lru_cache(maxsize=256)
def _head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes | None:
    """The bytes before the elements in the buffer of an array's tensor; None if only `write_tensor` can make them."""
    type_ = type_of(dtype)
    if not ITEM_BYTES[type_] or len(shape) > MAX_RANK:
        return None
    if dtype != DTYPES[type_] and dtype.kind != "b":  # the elements are big-endian
        return None
    elements = bytes(count_of(shape) * dtype.itemsize)
    whole = bytes(write_tensor(Tensor(type_, shape, memoryview(elements))))
    return whole[: len(whole) - len(elements)]
