"""Conversations that the task of a request runs by itself: a real session, driver and loop over lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.streams import Limits
from invoker.errors import Cancelled, DeadlineExceeded, InternalError, ProtocolViolation, ShuttingDown, Status
from invoker.execution.loop.request import converse
from invoker.protocols.riff.session import RiffSession
from tests.execution.loopcalls import JSON, agen, gen, square, until
from tests.execution.memory import driver_of


def start() -> bytes:
    return pb.InputSignal(start=pb.StartFrame(expectedContentTypes=[JSON])).SerializeToString()


def data(payload: bytes, index: int = 0) -> bytes:
    return pb.InputSignal(data=pb.InputFrame(payload=payload, contentType=JSON, argIndex=index)).SerializeToString()


class Request:
    """What a request's task reads and keeps; behind its last frame it waits for ever, unless that is None."""

    def __init__(self, *frames: Any) -> None:
        self.frames = list(frames)
        self.got: list[bytes] = []
        self.reads = 0
        self.is_reading = self.was_cancelled = False

    async def read(self) -> Any | None:
        if not self.frames:
            self.is_reading = True
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
        self.reads += 1
        frame = self.frames.pop(0)
        if isinstance(frame, BaseException):
            raise frame
        return frame

    def keep(self, frame: bytes) -> None:
        self.got.append(pb.OutputSignal.FromString(frame).data.payload)

    async def run(self, driver: Any, session: Any = None, **settings: Any) -> Any:
        """How it ended; nothing is left of it then."""
        try:
            return await converse(session or RiffSession(), driver, self.read, self.keep, **settings)
        finally:
            assert await driver.left(5)
            assert not driver.engine.running
            assert not driver.conversations


@pytest.mark.parametrize("function", [square, agen, gen])
async def test_every_style_answers_in_order(function):
    """Also a sync one, a hop away."""
    request = Request(start(), *(data(b"%d" % number) for number in range(100)), None)
    assert await request.run(driver_of(function)) is None
    assert request.got == [b"%d" % (n * n) for n in range(100)]


@pytest.mark.parametrize("is_async", [False, True])
async def test_R128_R129_it_reads_no_more_than_is_wanted(is_async):
    """Frames beyond the mark are read when the function has taken some, or when it starves."""

    def second_first(a: Iterator[int], b: Iterator[int]) -> Iterator[int]:
        yield len(list(b))
        yield len(list(a))

    async def asecond_first(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        yield len([x async for x in b])
        yield len([x async for x in a])

    frames = [data(b"1", number % 2) for number in range(500)]
    request = Request(start(), *frames, None)
    assert (
        await request.run(driver_of(asecond_first if is_async else second_first, limits=Limits(high_frames=8))) is None
    )
    assert request.got == [b"250", b"250"]


async def test_R128_a_sleeping_function_stops_the_reading():
    """Frames beyond the mark stay unread until the function takes those before."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield sum([x async for x in xs])

    driver = driver_of(late, limits=Limits(high_frames=8))
    request = Request(start(), *[data(b"1")] * 100, None)
    running = asyncio.ensure_future(request.run(driver))
    await until(lambda: any(one.is_paused for one in driver.conversations))
    for _ in range(10):
        await asyncio.sleep(0)
    assert request.reads == 9  # the start and eight frames
    go.set()
    assert await running is None
    assert request.got == [b"100"]


async def test_R128_a_reader_that_is_paused_at_the_half_close_waits_for_the_end():
    """It is asked for more, of which there is none."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        total = 0
        async for x in xs:
            total += x
            await asyncio.sleep(0)
        yield total

    driver = driver_of(late, limits=Limits(high_frames=2))
    request = Request(start(), data(b"1"), None)
    running = asyncio.ensure_future(request.run(driver))
    await until(lambda: request.reads == 3)
    go.set()
    assert await running is None
    assert request.got == [b"1"]


async def test_R114_an_end_while_it_reads_is_not_kept_waiting():
    """The function has returned: the reading is cancelled, the task is not."""

    async def first(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in xs:
            yield x
            return

    request = Request(start(), data(b"1"))
    assert await request.run(driver_of(first)) is None
    assert request.got == [b"1"]
    assert request.was_cancelled
    assert asyncio.current_task().cancelling() == 0


async def test_R124_a_passed_deadline_ends_it_while_it_reads():
    """The session hears of it, as of any ending."""
    request = Request(start())
    error = await request.run(driver_of(agen), deadline=time.monotonic() + 0.01)
    assert isinstance(error, DeadlineExceeded)
    assert request.was_cancelled


@pytest.mark.parametrize("is_async", [False, True])
async def test_R124_a_passed_deadline_ends_it_while_the_function_works(is_async):
    """The input was whole."""

    async def aforever() -> AsyncIterator[int]:
        await asyncio.sleep(3600)
        yield 1

    def forever(xs: Iterator[int]) -> Iterator[int]:
        while True:
            yield 1

    function = aforever if is_async else forever
    error = await Request(start(), None).run(driver_of(function), deadline=time.monotonic() + 0.01)
    assert isinstance(error, DeadlineExceeded)


async def test_R115_a_cancelled_task_cancels_the_invocation():
    """The transport cancels it when the peer is gone; nobody is left to tell."""
    request, driver = Request(start(), data(b"2")), driver_of(agen)
    running = asyncio.ensure_future(request.run(driver))
    await until(lambda: request.got)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("function", [agen, gen])
async def test_R110_a_peer_that_is_gone_ends_it(function):
    """The reading tells of it."""
    error = await Request(start(), data(b"2"), Cancelled("gone")).run(driver_of(function))
    assert error.status is Status.CANCELLED


async def test_R120_a_protocol_violation_ends_it():
    """Nothing more is read."""
    request = Request(start(), b"\xff\xff", None)
    assert isinstance(await request.run(driver_of(agen)), ProtocolViolation)
    assert request.reads == 2


async def test_a_reader_that_fails_is_our_error(caplog):
    """The peer learns no detail, the log does; its own time-out is no deadline."""
    for failure in (RuntimeError("secret"), TimeoutError("secret")):
        caplog.clear()
        error = await Request(start(), failure).run(driver_of(agen), deadline=time.monotonic() + 60)
        assert isinstance(error, InternalError)
        assert "secret" in caplog.text


async def test_R025_the_drain_cuts_it_while_it_reads():
    """What began before the drain goes on until then."""
    driver = driver_of(agen)
    request = Request(start(), data(b"2"))
    running = asyncio.ensure_future(request.run(driver))
    await until(lambda: request.is_reading)
    assert not await driver.drain(0.0)
    assert isinstance(await running, ShuttingDown)


@pytest.mark.parametrize("is_early", [False, True])
async def test_G104_what_began_before_the_drain_may_open(is_early):
    """All else is refused."""
    driver = driver_of(square)
    driver.engine.is_draining = True
    request = Request(start(), data(b"2"), None)
    error = await request.run(driver, is_early=is_early)
    assert error is None if is_early else isinstance(error, ShuttingDown)


@pytest.mark.parametrize("is_counted", [False, True])
async def test_what_the_caller_counts_is_not_counted_again(is_counted):
    """A share of the process's memory is taken once."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        await go.wait()
        async for x in xs:
            yield x

    driver = driver_of(late)
    request = Request(start(), data(b'"' + b"x" * 1_000_000 + b'"'), None)
    running = asyncio.ensure_future(request.run(driver, is_counted=is_counted))
    await until(lambda: request.reads == 3)
    assert bool(driver.engine.memory.held) is is_counted
    go.set()
    assert await running is None
