"""Tests of `invoker.codecs.chunks.pieces`."""

from __future__ import annotations

import zlib

from invoker.codecs.chunks import LEVELS, Limits, Packed, Terms


def test_F033_the_levels_are_those_of_zlib() -> None:
    """1, 2, 3 are 6, 9, 1; 0 leaves the bytes alone."""
    data = b"one two three " * 99
    assert {level: Packed.of(data, level).blob for level in range(4)} == {
        0: data,
        1: zlib.compress(data, 6),
        2: zlib.compress(data, 9),
        3: zlib.compress(data, 1),
    }
    assert set(LEVELS) == {1, 2, 3}


def test_F018_zeros_mean_no_chunks() -> None:
    """Either zero does."""
    assert [Terms(*pair).has_chunks for pair in ((0, 0), (8192, 0), (0, 2), (-1, 2), (1, 1))] == [False] * 4 + [True]


def test_F035_a_chunk_may_have_twice_its_size_and_64_kib() -> None:
    """Unless the limits say otherwise; without terms none may come."""
    assert Limits().chunk_of(Terms(8192, 2)) == 2 * 8192 + 65536
    assert Limits(chunk_bytes=5).chunk_of(Terms()) == Limits(chunk_bytes=5).chunk_of(Terms(8192, 2)) == 5
    assert Limits().chunk_of(Terms()) == 0
