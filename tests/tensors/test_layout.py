"""`invoker.tensors.layout`: one buffer of small parts and large ones."""

from __future__ import annotations

import struct

import pytest
from msgspec.structs import replace

from invoker.tensors import Code, GraphPipeError, InferResponse, Tensor, TensorType, read_infer_response, read_tensor
from invoker.tensors import layout as layouts
from invoker.tensors.writer import write_infer_response, write_tensor
from tests.tensors.samples import NUMERIC, numbers, strings

LARGE = Tensor(TensorType.UINT8, (10_001,), memoryview(bytes(range(251)) * 39 + b"x" * 212))


def test_large_data_is_not_copied_until_it_is_joined() -> None:
    """It is a piece of its own, and the very object that was given."""
    written = write_infer_response([LARGE, numbers(TensorType.INT64), replace(LARGE)])
    assert [piece is LARGE.data for piece in written.pieces] == [False, True, False, True]
    whole = bytes(written)
    assert len(whole) == written.size == sum(map(len, written.pieces))
    assert read_infer_response(whole) == InferResponse((LARGE, numbers(TensorType.INT64), LARGE))


def test_G057_a_tensor_that_is_there_twice_is_written_once() -> None:
    """Its references lead to the same place; whoever reads them gets it as often as it is wanted."""
    for one in (LARGE, numbers(TensorType.INT64), strings(b"x" * 5000)):
        written = write_infer_response([one] * 1000)
        assert written.size < 5000 + write_infer_response([one]).size
        assert read_infer_response(bytes(written)) == InferResponse((one,) * 1000)


def test_small_data_makes_no_pieces() -> None:
    """A hundred little tensors are one."""
    assert len(write_infer_response([numbers(TensorType.INT8) for _ in range(100)]).pieces) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 5, 4095, 4096, 4097, 5001])
def test_elements_are_aligned_to_eight(size: int) -> None:
    """Whatever is before them."""
    odd = Tensor(TensorType.UINT8, (size,), memoryview(b"\xee" * size))
    marked = Tensor(TensorType.FLOAT64, (2,), memoryview(b"elements" * 2))
    several = [odd, marked, strings(b"x" * size, b""), *map(replace, (marked, odd, odd, marked))]
    whole = bytes(write_infer_response(several))
    assert read_infer_response(whole).tensors == tuple(several)
    at, seen = -1, 0
    while (at := whole.find(b"elements" * 2, at + 1)) >= 0:
        assert at % 8 == 0
        seen += 1
    assert seen == 3


def test_numbers_of_a_shape_are_aligned_too() -> None:
    """Other readers may rely on it."""
    mark = 0x1122334455667788
    for rank in range(1, 6):
        tensor = Tensor(TensorType.UINT8, (mark,) * (rank - 1) + (mark,), memoryview(b""))
        assert bytes(write_tensor(tensor)).index(struct.pack("<q", mark)) % 8 == 0


def test_strings_end_with_a_zero() -> None:
    """C programs look for it; the next begins at a multiple of four."""
    whole = bytes(write_tensor(strings(b"abc", b"abcd", b"")))
    assert struct.pack("<I", 3) + b"abc\0" + struct.pack("<I", 4) + b"abcd\0\0\0\0" + bytes(8) in whole
    assert len(whole) % 4 == 0


def test_a_buffer_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distances have 32 bits, one of which is a sign."""
    assert layouts.MAX_BYTES == 2**31 - 1
    size = write_tensor(LARGE).size
    monkeypatch.setattr(layouts, "MAX_BYTES", size)
    assert write_tensor(LARGE).size == size
    monkeypatch.setattr(layouts, "MAX_BYTES", size - 1)
    with pytest.raises(GraphPipeError) as caught:
        write_tensor(LARGE)
    assert caught.value.code is Code.TOO_LARGE
    with pytest.raises(GraphPipeError, match="3000 strings"):
        write_tensor(strings(*[b"xxxx"] * 3000))


@pytest.mark.parametrize("type_", NUMERIC)
def test_each_type_comes_back(type_: TensorType) -> None:
    """From a buffer of its own."""
    tensor = numbers(type_)
    assert read_tensor(bytes(write_tensor(tensor)), 1000) == tensor
