"""Masks and their sums: `invoker.protocols.federated.wire.masks`."""

from __future__ import annotations

import hashlib
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.protocols.federated.wire import masks
from invoker.protocols.federated.wire.derive import mask_key
from invoker.protocols.federated.wire.masks import add_masks
from tests.protocols.federated.secagg import model

KEY, SESSION = bytes(range(32)), b"\xaa" * 32


def some_keys(count: int) -> list[bytes]:
    return [hashlib.sha256(b"%d" % number).digest() for number in range(count)]


@pytest.mark.parametrize(
    ("name", "modulus", "mask"),
    [
        ("test", 256, [48, 214, 12, 6]),
        ("test", 2**20, [360322, 627438, 242737, 579845]),
        ("test", 5, [4, 1, 3, 4]),
        ("test", 2, [1, 1, 0, 1]),
        ("test", 2636861836189, [1728629898004, 319390171616, 1493176641732, 669053178154]),
        ("w", 2**62, [628168989205401816, 1142910656048469652, 821587385906464235]),
        ("r", 129, [97, 45, 25, 43, 77, 3, 82, 121]),
    ],
)
def test_F096_masks_are_those_of_the_catalogue(name: str, modulus: int, mask: list[int]) -> None:
    """The vectors of section 1.4, from the key that two devices share to the elements."""
    key = mask_key(KEY, session=SESSION, modulus=modulus, length=len(mask), name=name)
    assert add_masks([key], modulus, len(mask)).tolist() == mask


def test_F096_the_keystream_is_that_of_the_catalogue() -> None:
    """The first bytes for a key of 32 ones; with a modulus of 256 they are the mask."""
    expected = bytes.fromhex("b08ecf9ec7eb5f0d7b78c42556d668ac")
    assert bytes(itertools.islice(model.keystream(b"1" * 32), 16)) == expected
    assert bytes(add_masks([b"1" * 32], 256, 16).tolist()) == expected


MODULI = st.one_of(st.integers(2, 2**62), st.integers(2, 300), st.integers(1, 62).map(lambda bits: 2**bits))


@settings(deadline=None, max_examples=150)
@given(MODULI, st.integers(1, 60), st.integers(0, 5))
def test_F096_sums_of_masks_are_those_of_the_slow_model(modulus: int, length: int, count: int) -> None:
    """For every modulus: those of each number of bytes, powers of two, and moduli whose samples are often left out."""
    keys = some_keys(count)
    slow = [model.mask(key, modulus, length) for key in keys]
    expected = [sum(mask[place] for mask in slow) % modulus for place in range(length)]
    assert add_masks(keys, modulus, length).tolist() == expected


@pytest.mark.parametrize("modulus", [2, 2**8, 2**16, 2**20, 2**24, 2**33, 2**62, 5, 2**20 + 1, 1000003, 2**62 - 57])
def test_F096_long_masks_continue_the_keystream(modulus: int) -> None:
    """Several pieces of the keystream, the last one cut anywhere."""
    keys = some_keys(2)
    length = 40_001 // -(-model.width(modulus) // 8)
    slow = [model.mask(key, modulus, length) for key in keys]
    assert add_masks(keys, modulus, length).tolist() == [(a + b) % modulus for a, b in zip(*slow, strict=True)]


@pytest.mark.parametrize("modulus", [2**16, 2**20, 2**62, 1000003, 2**62 - 57])
def test_sums_of_very_many_masks_do_not_overflow(modulus: int) -> None:
    """More masks than the sums of bytes have room for, and more than fit into 64 bits."""
    keys = some_keys(600)
    single = sum(add_masks([key], modulus, 9).astype(object) for key in keys)
    assert add_masks(keys, modulus, 9).tolist() == [int(value) % modulus for value in single]


def test_sums_of_bytes_are_never_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most that can happen: 600 keystreams whose every byte is 255."""

    def ones(key: bytes) -> masks.Update:
        def update(data: bytes | memoryview, into: np.ndarray) -> int:
            into[:] = 255
            return len(data)

        return update

    monkeypatch.setattr(masks, "_keystream", ones)
    for bits in (7, 8, 15, 16, 20, 24, 32, 40, 48, 56, 62):
        assert add_masks(some_keys(600), 2**bits, 5).tolist() == [(2**bits - 1) * 600 % 2**bits] * 5


def test_no_masks_add_up_to_nothing() -> None:
    """A round without dead devices has no masks of theirs."""
    assert add_masks([], 2**20, 3).tolist() == add_masks([], 5, 3).tolist() == [0, 0, 0]


def test_F119_memory_is_that_of_the_vector_whatever_the_masks() -> None:
    """300 masks of 200,000 elements take no more than ten vectors of sums; they would be 480 MB at once."""
    for modulus in (2**20, 1000003):
        add_masks(some_keys(1), modulus, 10)
        tracemalloc.start()
        add_masks(some_keys(300)[:40], modulus, 200_000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * 200_000 * 8


@pytest.mark.parametrize("modulus", [2**20, 1000003])
def test_a_sum_that_nobody_wants_any_more_is_given_up(modulus: int) -> None:
    """The round has failed while it ran."""
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    add_masks(some_keys(400), modulus, 4, stopped=stopped)
    assert asked == 4
