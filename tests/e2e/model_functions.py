"""Models for tests against a real server: the first is of arrays, with two named outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from invoker import function

Rows = Annotated[NDArray[np.float32], ("batch", 2)]


class Classes(NamedTuple):
    """What comes of a batch."""

    margin: Iterator[Annotated[NDArray[np.float32], ("batch",)]]
    label: Iterator[Annotated[NDArray[np.int64], ("batch",)]]


@function
def classify(rows: Rows) -> Classes:
    """Say which of two numbers is larger, and by how much."""
    label = (rows[:, 1] > rows[:, 0]).astype(np.int64)
    return Classes(iter([np.abs(rows[:, 1] - rows[:, 0])]), iter([label]))


@function
def repeat(word: str, times: int = 2) -> str:
    """The word so many times."""
    if times < 0:
        raise ValueError("a word cannot be repeated less than never")
    return word * times


@function
def echo(x: NDArray[Any]) -> NDArray[Any]:
    """The same again."""
    return x
