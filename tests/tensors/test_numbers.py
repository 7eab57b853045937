"""The short way between arrays and tensors gives what the long way gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from invoker.tensors import ArrayType, GraphPipeError, Tensor, TensorType, write_tensor
from invoker.tensors.arrays import DTYPES, fitted, to_array, to_tensor
from invoker.tensors.numbers import reader, written
from tests.tensors.samples import NUMERIC, numbers


@pytest.mark.parametrize("type_", NUMERIC)
@pytest.mark.parametrize("shape", [(), (4,), (0, 3), (1, 2, 3)])
def test_a_small_array_is_written_as_any_array_is(type_: TensorType, shape: tuple[int, ...]) -> None:
    """Byte by byte, also the second time, when the head is known."""
    count = int(np.prod(shape, dtype=int))
    for offset in (0, 1):
        array = (np.arange(count) + offset).astype(DTYPES[type_]).reshape(shape)
        assert written(array) == bytes(write_tensor(to_tensor(array)))


ODD = {
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "every second": np.arange(8, dtype=np.int16)[::2],
    "truth": np.array([True, False]),
}


@pytest.mark.parametrize("name", ODD)
def test_other_layouts_are_written_in_row_major_order(name: str) -> None:
    """As the long way does it (G-048)."""
    assert written(ODD[name]) == bytes(write_tensor(to_tensor(ODD[name])))


LONG = {
    "other byte order": np.arange(3, dtype=">f4"),
    "text": np.array(["a"]),
    "objects": np.array([b"a"], object),
    "dates": np.array(["2026-01-01"], "M8[D]"),
    "complex": np.array([1j]),
    "deep": np.zeros((1,) * 33, np.int8),
    "large": np.zeros(4097, np.uint8),
}


@pytest.mark.parametrize("name", LONG)
def test_other_arrays_take_the_long_way(name: str) -> None:
    """It knows what to do with them, or says why not."""
    assert written(LONG[name]) is None


@pytest.mark.parametrize("type_", NUMERIC)
@pytest.mark.parametrize("scalar", [None, np.float32, np.floating, np.bool_, np.int64])
def test_elements_are_read_as_any_tensor_is(type_: TensorType, scalar: type | None) -> None:
    """The array is the same, or the refusal is (G-061)."""
    tensor = numbers(type_)
    wanted = ArrayType(scalar)
    elements = bytes(tensor.data)  # type: ignore[arg-type]  # numbers
    read = reader(type_, tensor.shape, wanted)
    assert outcome(lambda: read(elements)) == outcome(lambda: fitted(to_array(tensor), wanted))


def outcome(make: Any) -> Any:
    try:
        array = make()
    except GraphPipeError as error:
        return (error.code, error.detail)
    assert array.flags.aligned
    assert not array.flags.writeable
    return (array.dtype, array.shape, array.tobytes())


def test_G045_elements_at_odd_addresses_are_copied() -> None:
    """Many a C library is slow or crashes with them; aligned ones stay where they are."""
    read = reader(TensorType.FLOAT64, (2,), ArrayType())
    source = bytearray(np.zeros(4, np.float64))
    odd = read(memoryview(source)[1:17])  # type: ignore[arg-type]  # a view does as well
    even = read(memoryview(source)[8:24])  # type: ignore[arg-type]
    assert odd.flags.aligned
    source[8] = 1
    assert not odd.any()
    assert even.any()


def test_G033_another_number_of_bytes_is_refused() -> None:
    """The text is that of the long way."""
    with pytest.raises(GraphPipeError, match=r"it has 7 bytes, and Float32 of the shape \[2\] takes 8"):
        reader(TensorType.FLOAT32, (2,), ArrayType())(bytes(7))


def test_a_shape_that_no_array_has_is_refused_as_before() -> None:
    """Beside a size of zero other sizes may be too large for numpy."""
    shape = (0, 2**62, 2**62)
    long = outcome(lambda: to_array(Tensor(TensorType.INT8, shape, memoryview(b""))))
    assert outcome(lambda: reader(TensorType.INT8, shape, ArrayType())(b"")) == long
