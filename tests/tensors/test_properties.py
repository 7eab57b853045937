"""What must hold of any array and any buffer: nothing is lost, and a reader as naive as can be reads the same."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from invoker.tensors import (
    ArrayType,
    Code,
    GraphPipeError,
    InferRequest,
    Tensor,
    TensorType,
    read_infer_response,
    read_request,
    read_tensor,
    write_infer_response,
    write_request,
    write_tensor,
)
from invoker.tensors.arrays import fitted, to_array, to_tensor
from tests.fuzz import tensors_naive as naive
from tests.fuzz.tensors import naively, plainly
from tests.fuzz.tensors_attacks import REQUESTS, places
from tests.tensors.samples import LIMIT, OWN, fixture

pytestmark = pytest.mark.timeout(15)

many = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

TYPES = {"u1": 1, "i1": 2, "u2": 3, "i2": 4, "u4": 5, "i4": 6, "u8": 7, "i8": 8, "f2": 9, "f4": 10, "f8": 11}
ELEMENTS = st.binary(max_size=5) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


class Own(np.ndarray):  # type: ignore[type-arg]  # of any element
    """A class of one's own, as memory-mapped arrays have."""


def _within(sizes: list[int]) -> tuple[int, ...]:
    """So many of the sizes that there are few elements; the others are 1."""
    most = 40
    found = []
    for size in sizes:
        found.append(size if size <= most else 1)
        most //= max(1, found[-1])
    return tuple(found)


SHAPES = st.lists(st.sampled_from([1, 1, 2, 3, 5, 0]), max_size=4).map(_within) | st.lists(
    st.sampled_from([1, 1, 1, 2, 3]), min_size=5, max_size=32
).map(_within)


@st.composite
def arrays(draw: Any) -> Any:
    """Any elements, in any layout."""
    shape = draw(SHAPES)
    count = math.prod(shape)
    kind = draw(st.sampled_from(["bool", "O", "S", "U", *TYPES]))
    if kind in TYPES:
        dtype = np.dtype(draw(st.sampled_from("<>")) + kind)
        size = count * dtype.itemsize
        array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype)
    elif kind == "bool":
        array = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    else:
        array = np.empty(count, object)
        array[:] = draw(st.lists(ELEMENTS, min_size=count, max_size=count))
        if kind != "O":  # these cannot have zeros at their ends
            texts = ["é" if kind == "U" else b"e" for _ in array.tolist()]
            array = np.array(texts, f"{kind}3")
    array = array.reshape(shape)
    for change in draw(st.lists(st.sampled_from(LAYOUTS), max_size=3)):
        array = change(draw, array)
    return array


def _transposed(draw: Any, array: Any) -> Any:
    return array.transpose(draw(st.permutations(range(array.ndim))))


def _sliced(draw: Any, array: Any) -> Any:
    step = st.sampled_from([slice(None), slice(None, None, -1), slice(None, None, 2), slice(1, None), slice(0, 0)])
    return array[(*(draw(step) for _ in range(min(array.ndim, 3))), ...)]  # an array, also where there is no step


def _broadcast(draw: Any, array: Any) -> Any:
    is_small = array.ndim < 30 and array.size <= 40
    return np.broadcast_to(array, (draw(st.integers(0, 3)), *array.shape)) if is_small else array


def _unaligned(_: Any, array: Any) -> Any:
    if array.dtype.kind == "O":
        return array
    memory = np.frombuffer(b"x" + array.tobytes(), "u1")
    return np.ndarray(array.shape, array.dtype, memory, offset=1)


LAYOUTS = [
    _transposed,
    _sliced,
    _broadcast,
    _unaligned,
    lambda _, array: np.asfortranarray(array),
    lambda _, array: array.view(Own),
    lambda _, array: array[..., None] if array.ndim < 32 else array,
    lambda _, array: array[0, ...] if array.ndim and len(array) else array,  # an array, also where it has one element
]


def expected(array: Any) -> dict[str, Any]:
    """The tensor that an array is, element by element in row-major order (2.3)."""
    array = np.asarray(array)
    elements = [array[index] for index in np.ndindex(array.shape)]
    found = {"type": 12, "shape": list(array.shape), "data": b"", "string_val": []}
    if array.dtype.kind in "OSU":
        return found | {"string_val": [str(one).encode() if isinstance(one, str) else bytes(one) for one in elements]}
    type_ = 1 if array.dtype == bool else TYPES[array.dtype.str[1:]]
    return found | {"type": type_, "data": b"".join(one.tobytes() for one in elements)}


@many
@given(arrays())
def test_G033_G044_G046_G048_G049_any_array_is_written_as_it_is(array: Any) -> None:
    """Of any type, rank, layout and order of bytes: an independent reader finds each element in its place."""
    found, _ = naive.read(bytes(write_tensor(to_tensor(array))), "Tensor")
    naive.check(found)
    assert found == expected(array)


@many
@given(arrays())
def test_G036_G040_G045_any_array_comes_back(array: Any) -> None:
    """Bit by bit; aligned, and not to be written to."""
    found = to_array(read_tensor(bytes(write_tensor(to_tensor(array))), LIMIT))
    assert expected(found) == expected(array)
    assert found.flags.aligned
    assert not found.flags.writeable


@many
@given(st.lists(arrays(), max_size=3), st.lists(st.text(max_size=4), max_size=4), st.binary(max_size=9), st.booleans())
def test_G021_any_request_means_the_same_to_two_readers(
    several: list[Any], outputs: list[str], config: bytes, is_named: bool
) -> None:
    """Also as a part of a larger buffer, whose place in memory is odd, and with something behind it."""
    names = tuple(f"n{index}" for index in range(len(several))) if is_named else ()
    outputs = [one.encode("utf-8", "ignore").decode() for one in outputs]
    request = InferRequest(tuple(map(to_tensor, several)), names, tuple(outputs), config)
    whole = bytes(write_request(request))
    assert plainly(whole) == naively(whole)
    assert plainly(whole)["input_tensors"] == [expected(one) for one in several]
    assert read_request(memoryview(b"x" + whole + b"behind")[1:]) == read_request(whole) == request


@many
@given(st.lists(arrays(), max_size=4), st.lists(st.integers(0, 3), max_size=6))
def test_G057_G064_any_response_means_the_same_to_two_readers(several: list[Any], order: list[int]) -> None:
    """Also one in which tensors repeat."""
    tensors = [to_tensor(one) for one in several]
    chosen = [index for index in order if index < len(tensors)]
    whole = bytes(write_infer_response([tensors[index] for index in chosen]))
    found = naive.read_response(whole)
    assert found["output_tensors"] == [expected(several[index]) for index in chosen]
    assert found["errors"] == []
    read = [expected(to_array(one)) for one in read_infer_response(whole).tensors]
    assert read == found["output_tensors"]


SMALL = ["metadata_request", "infer_request", "go_strings", "py_scalar", "go_empty", "go_float32"]


@pytest.mark.parametrize("name", SMALL)
def test_G021_G032_each_flipped_bit_means_the_same_to_two_readers(name: str) -> None:
    """Read alike or refused by both, with a code of those for requests that are wrong by themselves."""
    whole = fixture(name)
    for bit in range(8 * len(whole)):
        buffer = bytearray(whole)
        buffer[bit // 8] ^= 1 << bit % 8
        assert plainly(bytes(buffer)) == naively(bytes(buffer)), bit
        if naively(bytes(buffer)) is None:
            with pytest.raises(GraphPipeError) as caught:
                read_request(buffer)
            assert caught.value.code in (1, 2, 3, 9, 10, 11, 12, 13)
            assert 0 < len(caught.value.message.encode()) <= 4096


@pytest.mark.parametrize("name", SMALL)
def test_G018_G021_each_beginning_means_the_same_to_two_readers(name: str) -> None:
    """However much of a request is missing."""
    whole = fixture(name)
    for size in range(len(whole)):
        assert plainly(whole[:size]) == naively(whole[:size]), size


@many
@given(st.data())
@example(None)
def test_G021_G022_GT12_GT16_GT60_any_number_in_place_of_one_that_matters(data: Any) -> None:
    """Positions, sizes, counts and types of good requests: outside, in circles, shared, confused."""
    if data is None:
        return
    whole = fixture(data.draw(st.sampled_from(REQUESTS)))
    buffer = bytearray(whole)
    for one in data.draw(st.lists(st.sampled_from(places(whole)), min_size=1, max_size=3)):
        bits = 8 * one.width
        near = st.integers(-len(whole), len(whole)) | st.sampled_from([2**bits - 1, 2 ** (bits - 1), 0])
        number = data.draw(near | st.integers(0, 2**bits - 1)) % 2**bits
        buffer[one.at : one.at + one.width] = number.to_bytes(one.width, "little")
    assert plainly(bytes(buffer)) == naively(bytes(buffer))


@many
@given(st.binary(max_size=120), st.integers(0, 120))
def test_G021_any_bytes_mean_the_same_to_two_readers(raw: bytes, root: int) -> None:
    """With a root that may be one."""
    buffer = root.to_bytes(4, "little") + raw
    assert plainly(buffer) == naively(buffer)


@many
@given(SHAPES, st.integers(0, 12), st.binary(max_size=16), st.lists(st.binary(max_size=3), max_size=4))
def test_G033_G037_G043_any_parts_of_a_tensor(
    shape: tuple[int, ...], type_: int, raw: bytes, strings: list[bytes]
) -> None:
    """What cannot be a tensor is refused as the rules say."""
    kind = TensorType(type_)
    whole = bytes(write_tensor(Tensor(kind, shape, strings if kind is TensorType.STRING else memoryview(raw))))
    found, _ = naive.read(whole, "Tensor")
    try:
        naive.check(found)
    except naive.Bad:
        with pytest.raises(GraphPipeError):
            read_tensor(whole, LIMIT)
    else:
        assert expected(to_array(read_tensor(whole, LIMIT))) == found


@pytest.mark.parametrize("scalar", [np.str_, np.bytes_])
def test_G025_text_in_arrays_of_text_is_no_bomb(scalar: type) -> None:
    """numpy gives each string the room that the longest needs: a request of 600 KiB would take gigabytes."""
    tracemalloc.start()
    try:
        array = to_array(to_tensor([[b"x" * 200_000, *[""] * 100_000]]))
        with pytest.raises(GraphPipeError, match="object_") as caught:
            fitted(array, ArrayType(scalar))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code is Code.TOO_LARGE
    assert peak < 1 << 24


def test_the_naive_reader_is_no_fool() -> None:
    """It reads what others wrote, and sees what is wrong."""
    found, _ = naive.read_request(fixture("infer_request"))
    assert found is not None
    assert found["input_tensors"][0]["data"] == np.float32([1, 2]).tobytes()
    assert naive.read_response(OWN["errors"])["errors"][0]["code"] == 9
    for raw in (b"", bytes(8), b"\xff" * 100, fixture("infer_request")[:-1]):
        with pytest.raises(naive.Bad):
            naive.read_request(raw)
