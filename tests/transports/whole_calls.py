"""Functions and names for the tests of calls that are all here before their function runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from invoker import Context, Status
from tests.transports.riff import Riff, eventually, form

CORE = "grpc-python/1.85.1 grpc-c/58.0.0 (linux; chttp2)"
NODE = "grpc-node-js/1.14.7"
OK, UNKNOWN, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE = "0", "2", "1", "4", "14"

TRANSPORTS = ("aio", "direct", "lending")


def echo(xs: Iterator[bytes]) -> Iterator[bytes]:
    yield from xs


async def aecho(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for x in xs:
        yield x


aecho.__name__ = "echo"


def named(name: str, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return (("invoker-function", name), *more)


class Watcher:
    """A streaming function in both forms, which stays in user code until its caller is gone, or somebody says so.

    Attributes:
        inside: Released by each run that has come so far.
        go: Ends all runs.
        seen: What became of each run.
    """

    def __init__(self) -> None:
        self.inside, self.go = threading.Semaphore(0), threading.Event()
        self.seen: list[str] = []

    def of(self, kind: str) -> Callable[..., Any]:
        """The form that makes a transport of this kind what it is."""

        def watch(xs: Iterator[bytes], ctx: Context) -> Iterator[bytes]:
            try:
                count = len(list(xs))
                self.inside.release()
                self._stay(ctx)
                yield b"%d" % count
                self.seen.append("went on")
            finally:
                self.seen.append("left")

        async def awatch(xs: AsyncIterator[bytes], ctx: Context) -> AsyncIterator[bytes]:
            try:
                count = len([x async for x in xs])
                self.inside.release()
                await asyncio.to_thread(self._stay, ctx)
                yield b"%d" % count
                self.seen.append("went on")
            finally:
                self.seen.append("left")

        awatch.__name__ = "watch"
        return form(kind, watch, awatch)

    def _stay(self, ctx: Context) -> None:
        while not ctx.cancelled and not self.go.wait(0.005):
            pass


def finished(riff: Riff, count: int) -> dict[Status, int]:
    """How the invocations ended, once so many have."""
    counters = riff.driver.engine.counters
    assert eventually(lambda: sum(counters.finished.values()) == count)
    return counters.finished
