"""Models that foreign GraphPipe clients ask; `echo` is the first, and so the one at the root."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from invoker import Context, function

Rows = Annotated[NDArray[np.float32], ("batch", 2), "two numbers"]
ABSENT = np.zeros(0, np.uint8)


class Classes(NamedTuple):
    """What comes of a batch."""

    margin: Iterator[Annotated[NDArray[np.float32], ("batch",), "how much larger"]]
    label: Iterator[Annotated[NDArray[np.int64], ("batch",), "which is larger"]]


@function
def echo(x: NDArray[Any]) -> NDArray[Any]:
    """The same again."""
    return x


@function
def classify(rows: Rows) -> Classes:
    """Say which of two numbers is larger, and by how much."""
    label = (rows[:, 1] > rows[:, 0]).astype(np.int64)
    return Classes(iter([np.abs(rows[:, 1] - rows[:, 0])]), iter([label]))


@function(outputs=("y",))
def pair(x: NDArray[np.float32], n: NDArray[np.int64], ctx: Context) -> NDArray[np.float32]:
    """The first, times what the config says, plus the second."""
    said = ctx.config(dict) or {}
    return (x * said.get("k", 1) + n).astype(np.float32)


@function
def scaled(x: NDArray[np.float32], ctx: Context) -> NDArray[np.float32]:
    """What comes, times what the config says."""
    said = ctx.config(dict) or {}
    return (x * said["k"]).astype(np.float32)


@function
def three(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[np.float64]:
    """One after the other."""
    return np.concatenate([a, b, c]).astype(np.float64)


@function
def speak(words: NDArray[np.object_]) -> NDArray[np.object_]:
    """The same bytes again."""
    return words


@function(outputs=("out",))
def types(  # noqa: PLR0917 - one for each type
    in1: NDArray[Any] = ABSENT,
    in2: NDArray[Any] = ABSENT,
    in3: NDArray[Any] = ABSENT,
    in4: NDArray[Any] = ABSENT,
    in5: NDArray[Any] = ABSENT,
    in6: NDArray[Any] = ABSENT,
    in7: NDArray[Any] = ABSENT,
    in8: NDArray[Any] = ABSENT,
    in9: NDArray[Any] = ABSENT,
    in10: NDArray[Any] = ABSENT,
    in11: NDArray[Any] = ABSENT,
    in12: NDArray[Any] = ABSENT,
) -> NDArray[np.object_]:
    """What has come, in the order of the numbers of the types: type, and elements."""
    every = (in1, in2, in3, in4, in5, in6, in7, in8, in9, in10, in11, in12)
    said = [f"{one.dtype.name} {one.tolist()}" for one in every if one is not ABSENT]
    return np.array([one.encode() for one in said], object)


@function
def fail(x: NDArray[Any]) -> NDArray[Any]:
    """No answer, whatever comes."""
    raise ValueError(f"nothing can be made of {x.size} elements")
