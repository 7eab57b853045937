"""Vectors as bit strings: `invoker.protocols.federated.wire.packing`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.protocols.federated.wire.packing import bit_width, pack, packed_size, unpack
from tests.protocols.federated.secagg import model


@pytest.mark.parametrize(
    ("modulus", "values", "packed"),
    [
        (2**20, [1, 2, 3], "0100200000030000"),
        (2, [1, 0, 1, 1, 0, 0, 0, 1, 1], "8d01"),
        (5, [0, 4, 3, 2], "e004"),
        (2**20, [360322, 627438, 242737, 579845], "827fe52e9931b453908d"),
        (5, [4, 1, 3, 4], "cc08"),
    ],
)
def test_F096_vectors_are_packed_as_in_the_catalogue(modulus: int, values: list[int], packed: str) -> None:
    """And unpacked."""
    assert pack(np.array(values, np.uint64), modulus).hex() == packed
    assert unpack(bytes.fromhex(packed), modulus, len(values)).tolist() == values


@settings(deadline=None)
@given(st.data())
def test_F096_packing_is_that_of_the_slow_model(data: st.DataObject) -> None:
    """Any modulus, any length from nothing to more than two rows of 64."""
    modulus = data.draw(st.one_of(st.integers(2, 2**62), st.integers(1, 62).map(lambda bits: 2**bits)))
    values = data.draw(st.lists(st.integers(0, modulus - 1), max_size=150))
    packed = pack(np.array(values, np.uint64), modulus)
    assert packed == model.packed(values, modulus)
    assert len(packed) == packed_size(modulus, len(values))
    assert unpack(packed, modulus, len(values)).tolist() == values


@pytest.mark.parametrize("modulus", [2, 3, 2**20, 1000003, 2**62 - 1, 2**62])
def test_long_vectors_are_packed_in_blocks(modulus: int) -> None:
    """More than one block of 65,536 elements, the last one not full."""
    values = np.random.default_rng(1).integers(0, modulus, 65536 + 777, np.uint64)
    assert (unpack(pack(values, modulus), modulus, len(values)) == values).all()


def test_values_that_are_not_below_the_modulus_are_reduced_once() -> None:
    """Scenario 65: what a peer packs may be any number of b bits."""
    assert unpack(pack(np.array([7, 5, 4], np.uint64), 8), 5, 3).tolist() == [2, 0, 4]


def test_F118_packed_vectors_have_one_size_only() -> None:
    """A byte more or less is refused, and the error tells both sizes."""
    for wrong in (b"", bytes(7), bytes(9)):
        with pytest.raises(ValueError, match=rf"{len(wrong)} bytes came; 3 elements of 20 bits take 8 bytes"):
            unpack(wrong, 2**20, 3)


@pytest.mark.parametrize("modulus", [-1, 0, 1, 2**62 + 1, 2**64])
def test_F090_other_moduli_are_refused(modulus: int) -> None:
    """One would make all elements 0, and larger ones do not fit the sums."""
    with pytest.raises(ValueError, match=r"must be from 2 to 2\^62"):
        bit_width(modulus)
    assert bit_width(2) == 1
    assert bit_width(2**62) == 62
