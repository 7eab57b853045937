"""Converts real numbers to elements of a vector for secure aggregation, and sums back to real numbers (D20)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from invoker.protocols.federated.wire.packing import bit_width

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def widest_scale(clip: float, modulus: int, clients: int) -> float:
    """The largest scale with which a sum of ``clients`` values of at most ``clip`` cannot wrap around.

    Args:
        clip: The largest absolute value, above 0.
        modulus: The modulus of the vector, from 2 to 2^62.
        clients: The largest number of updates that a sum may contain.

    Raises:
        ValueError: The modulus is too small for so many clients, or an argument is out of its range.
    """
    bit_width(modulus)
    each = (modulus - 1) // 2 // clients if clients > 0 else 0
    if not clip > 0 or each < 1:
        raise ValueError(f"no scale fits {clients} clients and values up to {clip} into the modulus {modulus}")
    scale = each / clip
    # the division of large numbers may round upwards
    while round(clip * scale) > each:
        scale = math.nextafter(scale, 0.0)
    return scale


def quantize(values: ArrayLike, *, scale: float, modulus: int, clip: float | None = None) -> NDArray[Any]:
    """Round real numbers to elements of a vector; a negative number becomes the modulus minus its absolute value.

    Args:
        values: Real numbers, of any shape.
        scale: The factor before rounding: 1000.0 keeps three decimal places.
        modulus: The modulus of the vector, from 2 to 2^62.
        clip: Values with a larger absolute value are reduced to it; None: values are not clipped.

    Returns:
        An array of the same shape, uint64, each below the modulus, for an `Update` with secure aggregation.

    Raises:
        ValueError: A value is not finite, or its element would be half the modulus or more.
    """
    import numpy as np

    bit_width(modulus)
    real = np.asarray(values, np.float64)
    if not np.isfinite(real).all():
        raise ValueError("a value is not finite; only finite numbers can be summed up")
    scaled = np.rint((real if clip is None else np.clip(real, -clip, clip)) * scale)
    if scaled.size and 2 * float(np.abs(scaled).max()) >= modulus:
        raise ValueError(
            f"the element {np.abs(scaled).max():.0f} is not below half the modulus {modulus}: "
            "use a smaller scale or clip, or a larger modulus"
        )
    result: NDArray[Any] = np.where(scaled < 0, scaled.astype(np.int64) + modulus, scaled.astype(np.int64)).astype(
        np.uint64
    )
    return result


def centred(total: ArrayLike, *, modulus: int) -> NDArray[Any]:
    """Convert a sum to signed integers: elements from half the modulus on are negative.

    Args:
        total: An array of uint64 of any shape, each element below the modulus.
        modulus: The modulus of the vector, from 2 to 2^62.

    Returns:
        An array of the same shape, int64, from -(modulus // 2) to (modulus - 1) // 2.
    """
    import numpy as np

    bit_width(modulus)
    signed = np.asarray(total, np.uint64).astype(np.int64)
    result: NDArray[Any] = np.where(signed > (modulus - 1) // 2, signed - modulus, signed)
    return result


def dequantize(total: ArrayLike, *, scale: float, modulus: int) -> NDArray[Any]:
    """Convert a sum to real numbers, float64 of the same shape; ``scale`` and ``modulus`` are those of `quantize`."""
    import numpy as np

    return np.asarray(centred(total, modulus=modulus) / scale, np.float64)
