"""Real numbers as elements: `invoker.protocols.federated.secagg.quantity`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.protocols.federated.secagg import centred, dequantize, quantize, widest_scale


def test_values_are_rounded_and_negative_ones_counted_down_from_the_modulus() -> None:
    """The elements are unsigned and below the modulus; the shape stays."""
    elements = quantize([[0.0, 1.25], [-0.5, -2.0]], scale=4.0, modulus=100)
    assert elements.dtype == np.uint64
    assert elements.tolist() == [[0, 5], [98, 92]]
    assert centred(elements, modulus=100).tolist() == [[0, 5], [-2, -8]]
    assert dequantize(elements, scale=4.0, modulus=100).tolist() == [[0.0, 1.25], [-0.5, -2.0]]


@pytest.mark.parametrize(
    ("modulus", "least", "most"), [(2, -1, 0), (5, -2, 2), (8, -4, 3), (2**62, -(2**61), 2**61 - 1)]
)
def test_centred_covers_the_whole_modulus(modulus: int, least: int, most: int) -> None:
    """Half of the elements are negative; of an even modulus there is one negative one more."""
    assert centred(np.array([most, most + 1, modulus - 1], np.uint64), modulus=modulus).tolist() == [most, least, -1]


@settings(deadline=None)
@given(
    st.integers(1, 50),
    st.integers(2**12, 2**62),
    st.floats(0.01, 100.0),
    st.lists(st.floats(-1000, 1000), min_size=1, max_size=5),
)
def test_with_the_widest_scale_no_sum_wraps_around(
    clients: int, modulus: int, clip: float, values: list[float]
) -> None:
    """The sum of all clients is right to half a step of each."""
    scale = widest_scale(clip, modulus, clients)
    elements = quantize(values, scale=scale, modulus=modulus, clip=clip).astype(object)
    total = np.array([int(element) * clients % modulus for element in elements], np.uint64)
    expected = np.clip(values, -clip, clip) * clients
    off = np.abs(dequantize(total, scale=scale, modulus=modulus) - expected)
    assert (off <= clients / scale * 0.5 + 1e-9 * np.abs(expected) + 1e-9).all()


def test_values_that_would_wrap_around_are_refused() -> None:
    """The error names the element and what helps; a value just below passes."""
    with pytest.raises(ValueError, match="the element 4 is not below half the modulus 8: use a smaller scale"):
        quantize([4.0], scale=1.0, modulus=8)
    with pytest.raises(ValueError, match="half the modulus"):
        quantize([-4.0], scale=1.0, modulus=8)
    assert quantize([3.0, -3.0], scale=1.0, modulus=8).tolist() == [3, 5]
    assert quantize([9.0, -9.0], scale=1.0, modulus=8, clip=3.0).tolist() == [3, 5]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    """One of them would make the sum of all clients useless."""
    with pytest.raises(ValueError, match="not finite"):
        quantize([value], scale=1.0, modulus=8, clip=1.0)


@pytest.mark.parametrize(("clip", "modulus", "clients"), [(0.0, 100, 1), (-1.0, 100, 1), (1.0, 100, 50), (1.0, 100, 0)])
def test_there_is_no_scale_for_what_cannot_fit(clip: float, modulus: int, clients: int) -> None:
    """49 clients fit into 100, and 50 do not."""
    assert widest_scale(1.0, 100, 49) == 1.0
    with pytest.raises(ValueError, match="no scale fits"):
        widest_scale(clip, modulus, clients)


def test_F090_moduli_out_of_range_are_refused() -> None:
    """By each of the helpers."""
    for refused in (
        lambda: quantize([1.0], scale=1.0, modulus=1),
        lambda: centred([1], modulus=1),
        lambda: dequantize([1], scale=1.0, modulus=2**63),
        lambda: widest_scale(1.0, 0, 1),
    ):
        with pytest.raises(ValueError, match="the modulus is"):
            refused()
