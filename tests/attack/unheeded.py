"""What the victims of `tests.attack.inputs` serve: functions that do not read what they are sent, sync and async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import numpy as np

from invoker import Checkpoint, Context, Update, function

_STEP_S = 0.05
_LONG_S = 120.0


@function
def deaf(values: Iterator[bytes], signal: Iterator[bytes]) -> Iterator[bytes]:
    """Waits for its second input, so that the first one is read on and kept (R-129)."""
    yield from signal
    yield from values


@function
async def adeaf(values: AsyncIterator[bytes], signal: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same on the event loop."""
    async for one in signal:
        yield one
    async for one in values:
        yield one


def _sleep(context: Context) -> None:
    until_s = time.monotonic() + _LONG_S
    while not context.cancelled and time.monotonic() < until_s:
        time.sleep(_STEP_S)


@function
def asleep(values: Iterator[bytes], context: Context) -> Iterator[bytes]:
    """Reads nothing."""
    _sleep(context)
    yield from values


@function
async def aasleep(values: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same on the event loop."""
    await asyncio.sleep(_LONG_S)
    async for one in values:
        yield one


@function
def hold(data: bytes, context: Context) -> int:
    """Keeps what it was given."""
    _sleep(context)
    return len(data)


@function
async def ahold(data: bytes) -> int:
    """The same on the event loop."""
    await asyncio.sleep(_LONG_S)
    return len(data)


@function
def deaf_to_host(context: Context) -> int:
    """Begins a stream of its host and reads one item of it."""
    values = iter(context.stream("gives"))
    next(values)
    _sleep(context)
    return sum(len(one) for one in values)


def first() -> Checkpoint:
    """What rounds begin with."""
    return Checkpoint({"w": np.zeros(1, np.int8)})


def unread(updates: Iterator[Update]) -> Checkpoint:
    """Reads nothing of what devices report for a while."""
    time.sleep(15.0)
    return Checkpoint({"n": np.asarray(sum(1 for _ in updates))})
