"""`invoker.tensors.tables`: which tensors there can be."""

from __future__ import annotations

import math
import struct

import pytest

from invoker.tensors import Code, GraphPipeError, InferRequest, Tensor, TensorType, read_request, read_tensor
from invoker.tensors.flat import Flat
from invoker.tensors.writer import write_request
from tests.tensors.samples import LIMIT, NUMERIC, Parts, code_of, crafted, fixture, numbers, request, strings


def only(buffer: bytes) -> Tensor:
    """The one tensor of a request."""
    found = read_request(buffer, LIMIT)
    assert isinstance(found, InferRequest)
    (tensor,) = found.tensors
    return tensor


@pytest.mark.parametrize("type_", NUMERIC)
@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 3), (0, 3), (1,) * 32])
def test_G033_GT23_numbers_of_any_shape(type_: TensorType, shape: tuple[int, ...]) -> None:
    """What was written is read."""
    tensor = numbers(type_, shape)
    assert only(request(tensor)) == tensor


@pytest.mark.parametrize("surplus", [-1, 1, -8, 8])
def test_G033_GT25_data_of_another_length(surplus: int) -> None:
    """One byte short, one byte long, one element."""
    assert code_of(crafted(Parts(TensorType.INT64, (2,), bytes(16)))) is None
    assert code_of(crafted(Parts(TensorType.INT64, (2,), bytes(16 + surplus)))) is Code.DATA_LENGTH


@pytest.mark.parametrize("type_", [1, 12])
def test_G034_GT28_data_and_strings(type_: int) -> None:
    """Not both, whatever the type; but empty ones are as good as absent."""
    assert code_of(crafted(Parts(type_, (1,), b"a", [b"a"]))) is Code.DATA_AND_STRINGS
    assert code_of(crafted(Parts(1, (1,), b"a", []))) is None
    assert code_of(crafted(Parts(12, (1,), b"", [b"a"]))) is None


def test_G035_strings_of_another_number() -> None:
    """As many as the shape says, and no data."""
    assert code_of(crafted(Parts(12, (2,), None, [b"a"]))) is Code.DATA_LENGTH
    assert code_of(crafted(Parts(12, (0,), None, [b"a"]))) is Code.DATA_LENGTH
    assert code_of(crafted(Parts(12, (1,), None, None))) is Code.DATA_LENGTH
    assert code_of(crafted(Parts(12, (0,), b"a", None))) is Code.DATA_LENGTH
    assert only(crafted(Parts(12, (0,)))) == Tensor(TensorType.STRING, (0,), [])


def test_G035_GT20_strings_are_bytes_of_any_content() -> None:
    """Zeros within and at the end, and what is no Unicode."""
    tensor = strings(b"a\0b", b"a\0", b"\0", b"", b"\xff\xfe", "é".encode())
    assert only(request(tensor)) == tensor


def test_G023_GT19_strings_as_go_writes_them() -> None:
    """Without the zero behind them."""
    assert only(fixture("go_strings")) == strings(b"a", b"", b"four")
    nested = only(fixture("go_strings_2d"))
    assert nested == Tensor(TensorType.STRING, (2, 2), [b"a\0", b"\xff\xfe", b"x\0y", "é".encode()])


@pytest.mark.parametrize("type_", NUMERIC)
def test_G037_numbers_have_no_strings(type_: TensorType) -> None:
    """Also where they have no data."""
    assert code_of(crafted(Parts(type_, (1,), None, [b"a"]))) is Code.DATA_AND_STRINGS


def test_G038_rank_0_is_one_element() -> None:
    """An absent shape and an empty one are alike."""
    for shape in (None, ()):
        assert only(crafted(Parts(TensorType.UINT16, shape, b"\1\2"))).shape == ()
        assert code_of(crafted(Parts(TensorType.UINT16, shape, b""))) is Code.DATA_LENGTH
        assert only(crafted(Parts(12, shape, None, [b"one"]))).data == [b"one"]
        assert code_of(crafted(Parts(12, shape, None, []))) is Code.DATA_LENGTH


def test_G040_a_size_of_zero() -> None:
    """The shape is kept, and there is no data; an absent vector is an empty one."""
    for data in (b"", None):
        assert only(crafted(Parts(TensorType.FLOAT32, (0, 3), data))).shape == (0, 3)
    assert code_of(crafted(Parts(TensorType.FLOAT32, (0, 3), bytes(12)))) is Code.DATA_LENGTH


@pytest.mark.parametrize("shape", [(-1, 3), (-1,), (-3, -1), (0, -1), (-(2**63),)])
def test_G041_GT27_a_negative_size(shape: tuple[int, ...]) -> None:
    """Minus one means any size in metadata only."""
    count = max(0, math.prod(shape)) % 100
    assert code_of(crafted(Parts(1, shape, bytes(count)))) is Code.SHAPE
    assert code_of(crafted(Parts(12, shape, None, [b""] * count))) is Code.SHAPE


@pytest.mark.parametrize("shape", [(2**40, 2**40), (2**32, 2**32), (2**63 - 1, 2), (2**62, 4), (2**16,) * 4])
def test_G042_GT26_a_product_that_would_wrap(shape: tuple[int, ...]) -> None:
    """In 64 bits each of them is zero or small; here it is what it is."""
    for data in (b"", bytes(8)):
        assert code_of(crafted(Parts(1, shape, data))) is Code.DATA_LENGTH
    assert code_of(crafted(Parts(12, shape, None, []))) is Code.DATA_LENGTH


@pytest.mark.parametrize("type_", [0, 13, 14, 128, 255])
def test_G043_GT29_a_type_that_is_none(type_: int) -> None:
    """Null, and those of a schema to come; whatever else is wrong."""
    assert code_of(crafted(Parts(type_, (1,), b"a"))) is Code.UNSUPPORTED_TYPE
    assert code_of(crafted(Parts(type_))) is Code.UNSUPPORTED_TYPE


def test_G049_bits_are_kept() -> None:
    """Payloads of NaN, and the sign of zero."""
    data = struct.pack("<QQd", 0x7FF0000000000001, 0xFFF8DEADBEEF0001, -0.0)
    assert bytes(only(crafted(Parts(TensorType.FLOAT64, (3,), data))).data) == data


def test_the_text_says_which_and_what() -> None:
    """The second input, its type, its shape, and what that takes."""
    buffer = crafted(Parts(1, (1,), b"a"), Parts(TensorType.FLOAT32, (2, 2), b"12345"))
    with pytest.raises(GraphPipeError, match=r"input #1 has 5 bytes, and Float32 of the shape \[2, 2\] takes 16"):
        read_request(buffer, LIMIT)


def test_a_tensor_may_be_a_buffer_of_its_own() -> None:
    """It is judged as within a request."""
    own = fixture("own_tensor")
    assert read_tensor(own, LIMIT) == numbers(TensorType.FLOAT64)
    for buffer, limit, code in ((own[:-1], LIMIT, Code.MALFORMED), (own, len(own) - 1, Code.TOO_LARGE)):
        with pytest.raises(GraphPipeError) as caught:
            read_tensor(buffer, limit)
        assert caught.value.code is code


@pytest.mark.parametrize(("slot", "names"), [(1, "input_names"), (3, "output_names")])
def test_G053_a_name_that_was_never_set_is_empty(slot: int, names: str) -> None:
    """A client in JavaScript leaves references of 0 where names belong."""
    asked = InferRequest((numbers(TensorType.UINT8, (1,)),), **{names: ("x",)})
    buffer = bytearray(bytes(write_request(asked)))
    infer = Flat(buffer).root().table(1)
    assert infer is not None
    start, _ = infer.vector(slot, 4)
    buffer[start : start + 4] = bytes(4)
    read = read_request(bytes(buffer), LIMIT)
    assert getattr(read, names) == ("",)
