"""Buffers with flipped bytes, and any bytes at all: a message or `GraphPipeError`, soon and within bounds.

`python -m tests.fuzz --only tensors` does the same for as long as one likes.
"""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.tensors import read_request
from tests.fuzz import tensors
from tests.tensors.samples import LIMIT, READERS, fixture

FLIPS = 4000


@pytest.mark.parametrize("name", tensors.SEEDS)
def test_G032_GT18_flipped_bytes(name: str) -> None:
    """Some thousands of each; what is read is also made into arrays, and nothing costs more than four limits."""
    tracemalloc.start()
    try:
        report = tensors.flip(random.Random(name), fixture(name), FLIPS // len(tensors.SEEDS))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.faults == []
    assert report.tried == FLIPS // len(tensors.SEEDS)
    assert peak < 4 * LIMIT + (1 << 20)


@pytest.mark.parametrize("name", ["own_request", "own_shapes", "go_strings_2d", "infer_request"])
def test_G032_GT18_every_flip_of_valid_requests(name: str) -> None:
    """Each bit of each byte, once; what is read is made into arrays."""
    seed = fixture(name)
    for bit in range(8 * len(seed)):
        buffer = bytearray(seed)
        buffer[bit // 8] ^= 1 << bit % 8
        assert tensors.fault_of(read_request, bytes(buffer)) is None, buffer.hex()


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200), st.sampled_from(READERS), st.integers(0, 60))
def test_G021_G022_any_bytes_are_read_or_refused(raw: bytes, read: tensors.Reader, root: int) -> None:
    """With a root that leads somewhere, so that something is read."""
    assert tensors.fault_of(read, root.to_bytes(4, "little") + raw) is None


def test_a_fault_would_be_seen() -> None:
    """By its error, and by its time."""

    def broken(_: bytes) -> object:
        raise IndexError("out")

    assert "IndexError" in (tensors.fault_of(broken, b"") or "")
    assert tensors.fault_of(lambda _: None, b"") is None
    assert "took" in (tensors.fault_of(lambda _: sum(range(10_000)), b"", within_s=0.0) or "")
