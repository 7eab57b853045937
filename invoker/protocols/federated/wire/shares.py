"""Shares of a secret: any ``threshold`` of them recover it, and fewer reveal nothing about it (Shamir; F-096).

A secret is a big-endian number that is cut into limbs of 31 bits, the most significant one first. Each limb is the
constant term of a random polynomial of degree ``threshold - 1`` over the integers modulo 2^31 + 11. The share of list
index i consists of the values of all polynomials at i + 1, each as four bytes, big-endian: 36 bytes for a secret of 32
bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

PRIME: Final = 2**31 + 11
LIMB_BITS: Final = 31
SHARE_BYTES: Final = 36
_WORD: Final = 2**64


def split(secret: bytes, *, threshold: int, count: int) -> list[bytes]:
    """Make ``count`` shares of a secret; list index i belongs to device i.

    Args:
        secret: The secret, at least one byte.
        threshold: How many shares recover the secret, 1 <= threshold <= count.
        count: The number of shares, at most 2^20.
    """
    import numpy as np

    limbs = _limbs(secret)
    coefficients = np.concatenate([np.array([limbs], np.uint64), _uniform(threshold - 1, len(limbs))])
    points = np.arange(1, count + 1, dtype=np.uint64)
    values = np.empty((len(limbs), count), np.uint64)
    values[:] = coefficients[-1][:, None]
    top = PRIME - 1
    # This is Horner's rule. The remainder is slow, so it is taken only when the next step might not fit into 64 bits.
    for row in coefficients[-2::-1]:
        if top * count + PRIME > _WORD:
            np.remainder(values, PRIME, out=values)
            top = PRIME - 1
        np.multiply(values, points, out=values)
        np.add(values, row[:, None], out=values)
        top = top * count + PRIME - 1
    coefficients.fill(0)
    packed = (values % np.uint64(PRIME)).T.astype(">u4")
    return [share.tobytes() for share in packed]


def stack(shares: Sequence[bytes]) -> Array:
    """Convert shares of equal length to one array (shares, limbs) of uint64."""
    import numpy as np

    return np.frombuffer(b"".join(shares), ">u4").reshape(len(shares), -1).astype(np.uint64)


def weights(indices: Sequence[int], *, at: int = 0) -> Array:
    """Lagrange's weights: the sum of weight times share over ``indices`` is the polynomial's value at ``at``.

    Args:
        indices: The list indices of the shares, each once.
        at: The point: 0 for the secret, i + 1 for the share of index i.

    Returns:
        An array (indices,) of uint64 below the prime.
    """
    import numpy as np

    points = np.array(indices, np.int64) + 1
    above, below = np.ones(len(points), np.uint64), np.ones(len(points), np.uint64)
    for place, point in enumerate(points):
        factor = points - point
        factor[place] = 1
        np.remainder(below * (factor % PRIME).astype(np.uint64), PRIME, out=below)
        other = np.full(len(points), (at - int(point)) % PRIME, np.uint64)
        other[place] = 1
        np.remainder(above * other, PRIME, out=above)
    inverse = np.array([pow(int(value), -1, PRIME) for value in below], np.uint64)
    result: Array = above * inverse % np.uint64(PRIME)
    return result


def combine(weights: Array, shares: Array) -> Array:
    """The sum of weight times share, modulo the prime.

    Args:
        weights: The result of `weights`, an array (shares,).
        shares: An array (shares, ...) of uint32 or uint64 below 2^32; `stack` makes it from the shares of one secret.

    Returns:
        An array with the shape of one share, uint64 below the prime: the limbs of secrets, or of other shares.
    """
    import numpy as np

    total = np.zeros(shares.shape[1:], np.uint64)
    for weight, share in zip(weights, shares, strict=True):
        total += share * weight % np.uint64(PRIME)
    return total % np.uint64(PRIME)


def join(limbs: Array, size: int) -> bytes | None:
    """The secret of ``size`` bytes with these limbs; None: there is none, so shares were wrong (F-135)."""
    value = 0
    for limb in limbs.tolist():
        if limb >> LIMB_BITS:
            return None
        value = value << LIMB_BITS | limb
    return None if value >> (8 * size) else value.to_bytes(size, "big")


def _limbs(secret: bytes) -> list[int]:
    value, count = int.from_bytes(secret, "big"), -(-8 * len(secret) // LIMB_BITS)
    return [value >> (LIMB_BITS * (count - 1 - place)) & (1 << LIMB_BITS) - 1 for place in range(count)]


def _uniform(rows: int, columns: int) -> Array:
    """Random numbers from 0 to the prime less one, equally distributed, from the operating system (F-097)."""
    import numpy as np

    wanted = rows * columns
    found = np.empty(0, np.uint64)
    while len(found) < wanted:
        drawn = np.frombuffer(os.urandom(8 * (wanted - len(found)) + 256), np.uint32)
        found = np.concatenate([found, drawn[drawn < PRIME]])
    return found[:wanted].reshape(rows, columns)
