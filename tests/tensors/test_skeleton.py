"""What requests have in common but their elements, and when that is proven."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.tensors import (
    GraphPipeError,
    InferRequest,
    Skeleton,
    TensorType,
    Trace,
    read_infer_response,
    read_request,
    write_infer_response,
    write_tensor,
)
from invoker.tensors import read_tensor as read_one
from invoker.tensors import skeleton as module
from tests.tensors.samples import LIMIT, NUMERIC, fixture, numbers, request, strings

ONE = request(numbers(TensorType.FLOAT32, (1, 4)))
TWO = request(
    numbers(TensorType.FLOAT32, (2, 3)),
    numbers(TensorType.UINT8, (5,)),
    input_names=("x", "y"),
    output_names=("z",),
    config=b"{}",
)


def traced(buffer: bytes) -> tuple[InferRequest, Skeleton | None]:
    """A request, and its skeleton."""
    trace = Trace()
    read = read_request(buffer, LIMIT, trace=trace)
    assert isinstance(read, InferRequest)
    return read, Skeleton.of(buffer, trace)


def changed(buffer: bytes, skeleton: Skeleton, seed: int) -> bytes:
    """The same buffer with other elements."""
    other, chance = bytearray(buffer), random.Random(seed)
    for start, end in skeleton.elements:
        other[start:end] = chance.randbytes(end - start)
    return bytes(other)


def check_same(buffer: bytes, skeleton: Skeleton, seed: int) -> None:
    """A buffer that fits is read to the same tensors with its own elements."""
    other = changed(buffer, skeleton, seed)
    assert skeleton.fits(other)
    first, second = read_request(buffer, LIMIT), read_request(other, LIMIT)
    assert isinstance(first, InferRequest)
    assert isinstance(second, InferRequest)
    for name in ("input_names", "output_names", "config"):
        assert getattr(first, name) == getattr(second, name)
    assert [(one.type, one.shape) for one in first.tensors] == [(one.type, one.shape) for one in second.tensors]
    for tensor, (start, end) in zip(second.tensors, skeleton.elements, strict=True):
        assert bytes(tensor.data) == other[start:end]  # type: ignore[arg-type]  # tensors of numbers


@pytest.mark.parametrize("name", ["go_float32", "java_float32", "js_named", "py_float32", "go_outputs"])
@given(seed=st.integers(0, 1000))
def test_other_elements_fit_and_are_read_alike(name: str, seed: int) -> None:
    """Whoever wrote the buffer, each in an order of its own."""
    buffer = fixture(name)
    _, skeleton = traced(buffer)
    assert skeleton is not None
    check_same(buffer, skeleton, seed)


@given(at=st.integers(0, len(TWO) - 1), bit=st.integers(0, 7))
def test_any_other_difference_does_not_fit(at: int, bit: int) -> None:
    """Each byte is either an element's, or compared."""
    _, skeleton = traced(TWO)
    assert skeleton is not None
    other = bytearray(TWO)
    other[at] ^= 1 << bit
    assert skeleton.fits(other) is any(start <= at < end for start, end in skeleton.elements)
    assert not skeleton.fits(TWO + b"\0")
    assert not skeleton.fits(TWO[:-1])


@given(st.lists(st.tuples(st.integers(0, len(TWO) - 1), st.integers(0, 255)), max_size=6), st.integers(0, 1000))
def test_G101_what_hostile_buffers_teach_is_true(flips: list[tuple[int, int]], seed: int) -> None:
    """References may lead anywhere; a buffer with a skeleton is read alike whatever its elements are."""
    buffer = bytearray(TWO)
    for at, byte in flips:
        buffer[at] = byte
    trace = Trace()
    try:
        read = read_request(bytes(buffer), LIMIT, trace=trace)
    except GraphPipeError:
        return
    skeleton = Skeleton.of(buffer, trace)
    if skeleton is not None and isinstance(read, InferRequest) and len(skeleton.elements) == len(read.tensors):
        check_same(bytes(buffer), skeleton, seed)


def test_G101_elements_that_lie_over_a_table_have_no_skeleton() -> None:
    """Otherwise a request that fits could say something else there."""
    read, skeleton = traced(ONE)
    assert skeleton is not None
    ((start, end),) = skeleton.elements
    buffer = bytearray(ONE)
    table = next(  # the reference to the elements is the one that leads to their count
        at for at in range(0, start - 4, 4) if at + struct.unpack_from("<I", buffer, at)[0] == start - 4
    )
    for target in range(table + 4, start - 4, 4):  # somewhere before, where there is the right number by chance or now
        other = bytearray(buffer)
        struct.pack_into("<I", other, table, target - table)
        struct.pack_into("<I", other, target, end - start)
        try:
            read, skeleton = traced(bytes(other))
        except GraphPipeError:
            continue
        assert skeleton is None, target
    assert read.tensors


def test_strings_have_no_skeleton_beside_elements() -> None:
    """They may lie anywhere, and have any size."""
    assert traced(request(numbers(TensorType.INT8), strings(b"a")))[1] is None


def test_G057_elements_of_two_tensors_have_no_skeleton() -> None:
    """A table that two references lead to is two tensors, whose elements cannot differ."""
    tensor = numbers(TensorType.INT8)
    assert traced(request(tensor, tensor))[1] is None


@pytest.mark.parametrize("type_", NUMERIC)
def test_tensors_and_responses_have_skeletons_too(type_: TensorType) -> None:
    """The same reading is traced wherever there are elements; none of these may be empty to be one of them."""
    for shape in ((), (2, 3), (0,)):
        tensor = numbers(type_, shape)
        trace = Trace()
        buffer = bytes(write_tensor(tensor))
        read_one(buffer, LIMIT, trace)
        found = Skeleton.of(buffer, trace)
        assert found is not None
        assert [end - start for start, end in found.elements] == [tensor.size]
        trace = Trace()
        buffer = bytes(write_infer_response([tensor, numbers(type_)]))
        read_infer_response(buffer, trace=trace)
        found = Skeleton.of(buffer, trace)
        assert found is not None
        assert [end - start for start, end in found.elements] == [tensor.size, numbers(type_).size]


def test_large_skeletons_are_not_made() -> None:
    """A peer could fill the memory with them; the size of elements does not count."""
    assert traced(request(numbers(TensorType.INT8, (100_000,))))[1] is not None
    assert traced(request(numbers(TensorType.INT8), config=bytes(module.MOST_BYTES)))[1] is None
    assert traced(request(*(numbers(TensorType.INT8, (1,)) for _ in range(17))))[1] is None
