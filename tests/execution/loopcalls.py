"""A call in memory for reactors, and functions to run over it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import Close
from invoker.errors import InvocationError
from invoker.execution.loop.reactor import Reactor
from invoker.protocols.riff.session import RiffSession

JSON = "application/json"


class FakeCall:
    """A transport in memory: brings a frame in a turn of the loop, as long as the reactor wants more.

    Attributes:
        is_full: The next frame that is written has to wait for room.
        reads: Frames that the reactor has got.
        settled: Half-closes that the reactor wanted to be told from a cancel with care.
        unread: What the peer has sent and nobody has asked for.
        waits: Set while a body waits for room.
    """

    def __init__(self, driver: Any, *, deadline: float | None = None, session: Any = None) -> None:
        self.driver = driver
        self.is_gone = self.is_accepted = self.is_full = False
        self.unread: deque[Any] = deque()
        self.got: list[pb.OutputFrame] = []
        self.waits = asyncio.Event()
        self.asks = self.reads = self.settled = 0
        self._has_room = asyncio.Event()
        self._is_reading = True
        loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[Close] = loop.create_future()
        if deadline is not None:
            loop.call_later(max(0.0, deadline - time.monotonic()), self.go)
        self.reactor = Reactor(session or RiffSession(), self, driver, self._closed.set_result, deadline=deadline)

    # The reactor's side.

    def accepted(self) -> None:
        self.is_accepted = True

    def ask(self) -> None:
        assert not self._is_reading, "one receive at a time"
        self.asks += 1
        self._is_reading = True
        asyncio.get_running_loop().call_soon(self._bring)

    def write(self, frame: bytes) -> bool:
        assert not self._closed.done(), "a frame behind the status"
        self.got.append(pb.OutputSignal.FromString(frame).data)
        return not self.is_full

    async def room(self) -> None:
        self.waits.set()
        await self._has_room.wait()

    # The peer's side.

    def start(self, *types: str, names: tuple[str, ...] = ()) -> FakeCall:
        frame = pb.StartFrame(expectedContentTypes=types or (JSON,), inputNames=names)
        return self.raw(pb.InputSignal(start=frame).SerializeToString())

    def data(self, payload: bytes, index: int = 0, media_type: str = JSON) -> FakeCall:
        frame = pb.InputFrame(payload=payload, contentType=media_type, argIndex=index)
        return self.raw(pb.InputSignal(data=frame).SerializeToString())

    def half_close(self) -> FakeCall:
        return self.raw(None)

    def raw(self, frame: bytes | None) -> FakeCall:
        self.unread.append(frame)
        asyncio.get_running_loop().call_soon(self._bring)
        return self

    def go(self) -> None:
        """The peer is gone."""
        self.is_gone = True
        self._has_room.set()
        self.reactor.gone()

    def take(self) -> None:
        """The peer reads on."""
        self.is_full = False
        self._has_room.set()

    def _bring(self) -> None:
        if self._is_reading and self.unread:
            frame = self.unread.popleft()
            self._is_reading = False
            self.reads += 1
            if frame is None:
                self.settled += self.reactor.settles
            if self.reactor.arrived(frame) and frame is not None:
                self._is_reading = True
            if self.unread:
                asyncio.get_running_loop().call_soon(self._bring)

    @property
    def is_over(self) -> bool:
        return self._closed.done()

    async def ending(self) -> InvocationError | None:
        """How the conversation ended; others of its driver may go on."""
        async with asyncio.timeout(5):
            return (await asyncio.shield(self._closed)).error

    async def end(self) -> InvocationError | None:
        """How the conversation ended, once its bodies have left too; nothing is left of it then."""
        error = await self.ending()
        assert await self.driver.left(5)
        assert not self.driver.engine.running
        assert not self.driver.conversations
        assert not self.reactor.runners
        return error

    async def outputs(self, count: int) -> list[bytes]:
        """The first ``count`` payloads, once they have arrived."""
        await until(lambda: len(self.got) >= count)
        return self.payloads()[:count]

    def payloads(self, index: int | None = None) -> list[bytes]:
        return [one.payload for one in self.got if index is None or one.resultIndex == index]


async def square(x: int) -> int:
    return x * x


async def agen(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x * x


def gen(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield x * x


async def until(fact: Callable[[], Any]) -> None:
    """Give turns to others until something is so."""
    async with asyncio.timeout(5):
        while not fact():  # noqa: ASYNC110 - facts of the code under test have no event
            await asyncio.sleep(0)
