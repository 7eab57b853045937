"""Isolated functions; children import this module."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple, Self

from invoker import Context, function


@function(isolation="process")
def square(x: int) -> int:
    """A mapped function."""
    return x * x


@function(isolation="process")
async def asquare(x: int) -> int:
    """An async one."""
    return x * x


@function(isolation="process")
def accumulate(xs: Iterator[int]) -> Iterator[int]:
    """A stream in, a stream out."""
    total = 0
    for x in xs:
        total += x
        yield total


@function(isolation="process")
def crash(how: str) -> str:
    """End the process in various ways, or raise."""
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ValueError("this one is bad")
    return how


@function(isolation="process", memory_bytes=256 * 1024 * 1024)
def hog(count: int) -> int:
    """Take memory."""
    return len(bytearray(count))


@function(isolation="process", timeout_s=0.3)
def deaf(path: str) -> int:
    """Leave a file, and never return."""
    with open(path, "w"):  # noqa: PTH123 - a test of plain code
        x = 0
    while True:
        x += 1


@function(isolation="process")
def pid(x: int) -> int:
    """Say which process this is."""
    return os.getpid()


@function(isolation="process")
def nap(path: str) -> int:
    """Say that it runs, then sleep until it is stopped."""
    with open(path, "w") as file:  # noqa: PTH123 - a test of plain code
        file.write(str(os.getpid()))
    while True:
        time.sleep(0.01)


class Evens(NamedTuple):
    """Two outputs."""

    even: Iterator[int]
    odd: Iterator[int]


@function(isolation="process")
def evens(xs: Iterator[int]) -> Evens:
    """Two outputs from one input."""
    seen = list(xs)
    return Evens((x for x in seen if x % 2 == 0), (x for x in seen if x % 2))


@function(isolation="process")
def first_second(first: Iterator[int], second: Iterator[int]) -> Iterator[int]:
    """Read input 1 to its end before input 0."""
    yield sum(second)
    yield sum(first)


@function(isolation="process")
def scaled(xs: Iterator[int], factor: int = 2) -> Iterator[int]:
    """A stream, and an option."""
    for x in xs:
        yield x * factor


@function(isolation="process")
def tell(x: int, ctx: Context) -> list[object]:
    """What the context says."""
    return [x, ctx.function, ctx.metadata.get("who"), (ctx.remaining() or 0) > 0, ctx.config(dict)]


@function(isolation="process")
async def stop_after(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    """Tell in a ``finally`` that it was stopped."""
    try:
        async for x in xs:
            yield x
    finally:
        print("finally", file=sys.stderr, flush=True)


@function(isolation="process")
def burst(count: int) -> Iterator[bytes]:
    """Many large values."""
    for _ in range(count):
        yield b"x" * 65536


@function(isolation="process")
def thread_burst(count: int) -> Iterator[int]:
    """Many small values."""
    yield from range(count)


@function(isolation="process")
def calls_it(x: int, ctx: Context) -> int:
    """Call another function of the serving process."""
    return int(ctx.call("plain", x)) + int(ctx.call("plain", x=10))


@function(isolation="process")
async def streams_it(xs: AsyncIterator[int], ctx: Context) -> AsyncIterator[int]:
    """Give another function one's own input, and take its values."""
    async for value in ctx.stream("label", xs):
        yield value


@function
def label(xs: Iterator[int]) -> Iterator[int]:
    """A streaming function that is not isolated."""
    for x in xs:
        yield x + 100


@function(isolation="process")
def rubbish(x: int) -> int:
    """Write rubbish to every socket of this process."""
    for number in range(3, 64):
        try:
            os.write(number, b"\x00\x00\x00\x05rubbish")
        except OSError:
            continue
    time.sleep(5)
    return x


@function(isolation="process")
class Model:
    """Made and entered once in each child."""

    def __enter__(self) -> Self:
        self.entered = os.getpid()
        return self

    def __exit__(self, *exc: object) -> None:
        print("left", file=sys.stderr, flush=True)

    def __call__(self, x: int) -> bool:
        """Whether this is the process in which it was entered."""
        return self.entered == os.getpid()


@function(isolation="process")
def spends(mib: int) -> int:
    """Keep the processor busy for 30 ms, with so much memory."""
    held = b"x" * (mib << 20)
    until = time.process_time() + 0.03
    while time.process_time() < until:
        pass
    return len(held)
