"""Models that are attacked; the first is that of bare sockets."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from invoker import function
from invoker.protocols import graphpipe
from tests.fuzz import sync_actions

_WATCHED = ("Conversation", "Exchange", "GraphPipeSession", "_Batch", "_Channel", "_Connection", "_Place")


@function
def echo(x: NDArray[Any]) -> NDArray[Any]:
    """What came."""
    return x


class Both(NamedTuple):
    """Two outputs."""

    total: NDArray[np.float64]
    count: NDArray[np.int64]


@function
def pair(a: Annotated[NDArray[np.float64], ("rows", 3)], b: NDArray[np.int64], scale: float = 1.0) -> Both:
    """Sums of rows, and how many there are."""
    return Both(a.sum(axis=1) * scale + b.sum(), np.array([len(a)]))


@function
def listed(x: list[Any]) -> list[Any]:
    """A function that knows no arrays."""
    return x


@function
def words(x: str) -> str:
    """Nor does this one."""
    return x.upper()


@function(options=[graphpipe.Rows()])
def rowed(x: Iterator[NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    """Row by row."""
    for one in x:
        yield one * 2


@function(batch_max=8, batch_wait_ms=2)
def batched(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Several requests at once, which one of them may spoil."""
    if (x < 0).any():
        raise ValueError("below zero")
    return x + 1


@function
def several(*xs: NDArray[Any]) -> NDArray[np.int64]:
    """Any number of inputs."""
    return np.array([one.size for one in xs])


@function
def fails(x: NDArray[Any]) -> NDArray[Any]:
    """Never gives anything."""
    raise ValueError("on purpose")


@function
async def waits(x: NDArray[Any]) -> NDArray[Any]:
    """Longer than anybody waits for it."""
    await asyncio.sleep(60)
    return x


@function
def state() -> str:
    """What this process has: see `sync_actions.state`; and of this protocol."""
    found = sync_actions.state()
    kinds = Counter(type(one).__name__ for one in gc.get_objects() if type(one).__module__.startswith("invoker."))
    return json.dumps(found | {name: kinds[name] for name in _WATCHED})
