"""What the victims of `tests.attack.outlives` serve: functions that take and give large values and end in every way.

Python's collector never runs in them, so whatever a cycle holds is held for good.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from invoker import function
from invoker.telemetry.memory import malloc_trim

gc.disable()

_STEP_S = 0.05
_LONG_S = 20.0


def _made(data: bytes) -> bytes:
    """Four times as much, which is more than any transport keeps for a client that reads nothing."""
    return data[:1] + b"x" * (4 * len(data))


@function
def echo(data: bytes) -> bytes:
    """What came; raises what starts with an f; waits to be taken back with what starts with a w."""
    if data[:1] == b"w":
        for _ in range(int(0.5 / _STEP_S)):
            time.sleep(_STEP_S)
    if data[:1] == b"f":
        raise ValueError("as the caller wished")
    return _made(data)


@function
async def aecho(data: bytes) -> bytes:
    """The same on the event loop."""
    if data[:1] == b"w":
        await asyncio.sleep(_LONG_S)
    if data[:1] == b"f":
        raise ValueError("as the caller wished")
    return _made(data)


@function
def echoes(items: Iterator[bytes]) -> Iterator[bytes]:
    """The same of each item."""
    for one in items:
        yield _made(one)
        if one[:1] == b"f":
            raise ValueError("as the caller wished")


@function
async def aechoes(items: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same on the event loop."""
    async for one in items:
        yield _made(one)
        if one[:1] == b"f":
            raise ValueError("as the caller wished")


@function(safe=True)
def gives(size: int, count: int = 1) -> Iterator[bytes]:
    """So many values of such a size."""
    for _ in range(count):
        yield b"x" * size


@function(safe=True)
async def agives(size: int, count: int = 1) -> AsyncIterator[bytes]:
    """The same on the event loop."""
    for _ in range(count):
        yield b"x" * size


@function(safe=True)
def give(size: int) -> bytes:
    """One value of such a size."""
    return b"x" * size


@function(safe=True)
async def agive(size: int) -> bytes:
    """The same on the event loop."""
    return b"x" * size


@function(isolation="process")
def iecho(data: bytes) -> bytes:
    """What came, from a child."""
    return echo(data)


@function(isolation="process")
def iechoes(items: Iterator[bytes]) -> Iterator[bytes]:
    """What came, from a child."""
    yield from echoes(items)


@function
def held(_: int) -> int:
    """Bytes of memory that the process has, once the C library has given back what is free."""
    malloc_trim()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@function
def tensor(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice as much; ends as `echo` does, by its first element."""
    echo(bytes([int(x[0])]))
    return x * 2


@function
async def atensor(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same on the event loop."""
    await aecho(bytes([int(x[0])]))
    return x * 2


@function(safe=True)
def fill(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """As many ones as the first element says."""
    return np.ones(int(x[0]))


@function(safe=True)
async def afill(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same on the event loop."""
    return fill(x)


class Pair(NamedTuple):
    """Two outputs."""

    left: Iterator[bytes]
    right: Iterator[bytes]


@function(safe=True)
def pair(size: int) -> Pair:
    """Three values of such a size at each of two outputs."""
    return Pair(gives(size, 3), gives(size, 3))
