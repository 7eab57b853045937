"""What victims serve: functions that do next to nothing with large values, sync and async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from invoker import Checkpoint, Update, function
from invoker.protocols import graphpipe


@function
def kind(value: Any) -> str:
    """What came, without a look inside."""
    return type(value).__name__


@function
async def akind(value: Any) -> str:
    """The same on the event loop."""
    return type(value).__name__


@function
def kinds(values: Iterator[Any]) -> Iterator[str]:
    """The same of each value of a stream."""
    for value in values:
        yield type(value).__name__


@function
async def deaf(values: AsyncIterator[Any], signal: AsyncIterator[Any]) -> AsyncIterator[str]:
    """Waits for its second input, so that the first one is read on and kept (R-129)."""
    async for _ in signal:
        yield "heard"
    async for value in values:
        yield type(value).__name__


@function
async def slow(value: Any) -> str:
    """Keeps a value for a second."""
    await asyncio.sleep(1)
    return type(value).__name__


@function
def held(value: Any) -> str:
    """Keeps a value, and its thread, for a fifth of a second."""
    time.sleep(0.2)
    return type(value).__name__


@function
def twice(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Element by element."""
    return x * 2


@function(options=[graphpipe.Rows()])
def row(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row by row."""
    return x


@function
async def hold(seconds: float) -> None:
    """Computes in the event loop, which nothing of ours would do."""
    until_s = time.process_time() + seconds
    while time.process_time() < until_s:
        pass


@function
async def tasks(_: Any) -> int:
    """How many tasks the event loop has."""
    return len(asyncio.all_tasks())


def first() -> Checkpoint:
    """What rounds begin with."""
    return Checkpoint({"w": np.zeros(1, np.int8)})


def counted(updates: Iterator[Update]) -> Checkpoint:
    """How many updates there were."""
    return Checkpoint({"n": np.asarray(sum(1 for _ in updates))})
