"""Functions of arrays, for tests against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from invoker import function


@function
def double(batches: Iterator[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """Each batch times two, as it comes."""
    for batch in batches:
        yield batch * 2


@function
def combine(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """The sum of two arrays of any type."""
    return (left + right).astype(np.float64)


@function
def words(texts: NDArray[np.object_]) -> list[int]:
    """How long each string is; the array cannot be written."""
    assert not texts.flags.writeable
    return [len(one) for one in texts.reshape(-1)]
