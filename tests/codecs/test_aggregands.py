"""`invoker.codecs.aggregands`: the same as the protobuf library reads."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.aggregands import read_aggregands
from tests.codecs.wire import PATIENT

NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 300)


@PATIENT
@given(st.dictionaries(st.text(min_size=1, max_size=5), st.lists(NUMBERS, max_size=50), max_size=4))
def test_vectors_are_read_as_the_library_reads_them(vectors: dict[str, list[int]]) -> None:
    """Any names and numbers of 64 bits."""
    message = pb.Checkpoint()
    for name, values in vectors.items():
        message.aggregands[name].values.extend(values)
        message.aggregands[name].bitwidth = 64
    found = read_aggregands(message.SerializeToString())
    assert {name: array.tolist() for name, array in found.items()} == vectors
    assert all(array.dtype == np.uint64 for array in found.values())


def test_numbers_may_come_one_by_one_and_unknown_fields_are_skipped() -> None:
    """What is not packed counts as well, and newer fields do no harm."""
    vector = b"\x08\x05" + b"\x0a\x02\x06\x07" + b"\x08\x08" + b"\x7a\x01x" + b"\x79" + bytes(8) + b"\x7d" + bytes(4)
    entry = b"\x0a\x01w" + b"\x12" + bytes([len(vector)]) + vector
    found = read_aggregands(b"\x28\x01" + b"\x0a" + bytes([len(entry)]) + entry)
    assert {name: array.tolist() for name, array in found.items()} == {"w": [5, 6, 7, 8]}


def test_F087_values_have_no_more_bits_than_they_say() -> None:
    """A value must be smaller than 2 to the power of the bit width, where that is said."""
    message = pb.Checkpoint()
    message.aggregands["w"].values.extend([3, 4])
    assert read_aggregands(message.SerializeToString())["w"].tolist() == [3, 4]
    message.aggregands["w"].bitwidth = 2
    with pytest.raises(ValueError, match="'w' has a value 4 that needs more than its 2 bits"):
        read_aggregands(message.SerializeToString())
    message.aggregands["w"].bitwidth = 65
    with pytest.raises(ValueError, match="65 bits"):
        read_aggregands(message.SerializeToString())


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"\x0a\x05\x0a\x01w", "cut off"),
        (b"\x0a\x00", "without a name"),
        (b"\x0a\x08\x0a\x01w\x12\x03\x0a\x01\x80", "last number is cut off"),
        (b"\x0a\x12\x0a\x01w\x12\x0d\x0a\x0b" + b"\x80" * 10 + b"\1", "more than 64 bits"),
        (b"\x0a\x11\x0a\x01w\x12\x0c\x0a\x0a" + b"\x80" * 9 + b"\2", "more than 64 bits"),
        (b"\x80" * 11, "more than 64 bits"),
        (b"\x80" * 9 + b"\2", "more than 64 bits"),
        (b"\x0b", "neither a zip nor"),
        (b"\x0a\x03\x0a\x01w" * 2, "two vectors 'w'"),
        (b"\x0a\x03\x0a\x01\xff", "utf-8"),
    ],
)
def test_what_is_no_checkpoint_is_refused(payload: bytes, problem: str) -> None:
    """Cut off, too long, without a name, or of another kind."""
    with pytest.raises(ValueError, match=problem):
        read_aggregands(payload)


def test_vectors_are_read_across_pieces() -> None:
    """Numbers of all lengths, so that some are cut wherever a piece ends."""
    message = pb.Checkpoint()
    values = [1 << (place * 7 % 64) for place in range(200_000)]
    message.aggregands["w"].values.extend(values)
    assert read_aggregands(message.SerializeToString())["w"].tolist() == values


def test_a_vector_becomes_no_larger_than_it_may() -> None:
    """Each byte could become eight; with what it takes to read them, it was a hundred."""
    message = pb.Checkpoint()
    message.aggregands["v"].values.extend([1] * 1000)
    message.aggregands["w"].values.extend([1] * 2_000_000)
    payload = message.SerializeToString(deterministic=True)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="a vector of 2000000 values, which exceeds the limit of 1999000"):
            read_aggregands(payload, 16_000_000)
        refused = tracemalloc.get_traced_memory()[1]
        assert read_aggregands(payload, 16_008_000)["w"].size == 2_000_000
        assert tracemalloc.get_traced_memory()[1] < 48_000_000
    finally:
        tracemalloc.stop()
    assert refused < 12_000_000


@pytest.mark.parametrize(
    "payload",
    [
        bytes(2 * 65_537),
        b"\x0a\x87\x80\x08\x0a\x01w\x12\x80\x80\x08" + b"\x08\x01" * 65_536,
        b"\x78\x01" * 65_537,
    ],
)
def test_a_payload_has_a_bounded_number_of_fields(payload: bytes) -> None:
    """A million fields of two bytes would keep a thread for seconds, and nobody writes them."""
    with pytest.raises(ValueError, match="more than 65536 fields"):
        read_aggregands(payload)
