"""Reactors: conversations on the loop without a task for reading."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker.core.streams import Limits
from invoker.errors import LimitExceeded
from tests.execution.loopcalls import FakeCall, until
from tests.execution.memory import driver_of


async def test_R114_the_function_may_end_before_its_input():
    """The call ends with OK; the rest of the input is wanted, to be discarded."""

    async def first(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in xs:
            yield x
            return

    peer = FakeCall(driver_of(first)).start().data(b"1")
    assert await peer.end() is None
    assert peer.payloads() == [b"1"]
    assert peer.reactor.arrived(b"\xff\xff\xff")
    assert peer.reactor.arrived(None)


async def test_R114_a_reader_that_was_paused_is_resumed_at_the_end():
    """What is left of the input is discarded, so that the peer can get rid of it."""
    go = asyncio.Event()

    async def deaf(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield 1

    peer = FakeCall(driver_of(deaf, limits=Limits(high_frames=4))).start()
    for _ in range(10):
        peer.data(b"1")
    await paused(peer)
    go.set()
    assert await peer.end() is None
    await until(lambda: not peer.unread)
    assert peer.asks == 1


async def paused(peer: FakeCall) -> None:
    """Wait until the reactor wants no more."""
    await until(lambda: peer.reactor.is_paused)


async def test_R128_reading_pauses_at_the_mark_and_goes_on_when_the_function_reads():
    """Frames beyond the mark stay with the transport."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield sum([x async for x in xs])

    peer = FakeCall(driver_of(late, limits=Limits(high_frames=8))).start()
    for _ in range(100):
        peer.data(b"1")
    await paused(peer)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(peer.unread) == 92
    go.set()
    assert await peer.half_close().end() is None
    assert peer.payloads() == [b"100"]
    assert peer.asks >= 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_R129_starvation_reads_on_beyond_the_mark(is_async):
    """A function that lists input 1 and then input 0 gets both."""

    def second_first(a: Iterator[int], b: Iterator[int]) -> Iterator[int]:
        yield len(list(b))
        yield len(list(a))

    async def asecond_first(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        yield len([x async for x in b])
        yield len([x async for x in a])

    peer = FakeCall(driver_of(asecond_first if is_async else second_first, limits=Limits(high_frames=8))).start()
    for _ in range(100):
        peer.data(b"1", 0)
    for _ in range(100):
        peer.data(b"1", 1)
    assert await peer.half_close().end() is None
    assert peer.payloads() == [b"100", b"100"]


async def test_R129_a_paused_reader_goes_on_when_somebody_begins_to_starve():
    """The mark was reached before the function came to wait for the other input."""
    go = asyncio.Event()

    async def second(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        async for x in b:
            yield x
            return

    peer = FakeCall(driver_of(second, limits=Limits(high_frames=4))).start()
    for _ in range(20):
        peer.data(b"1", 0)
    await paused(peer)
    go.set()
    assert await peer.data(b"7", 1).end() is None
    assert peer.payloads() == [b"7"]


async def test_R130_the_hard_cap_ends_a_starving_call():
    """Endless frames for an input that nobody reads."""

    async def other(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in b:
            yield x

    peer = FakeCall(driver_of(other, limits=Limits(high_frames=4, hard_frames=50))).start()
    for _ in range(60):
        peer.data(b"1", 0)
    assert isinstance(await peer.end(), LimitExceeded)


async def test_R129_a_thread_that_takes_all_while_the_reader_decides_to_pause_is_not_left_waiting():
    """It has looked whether reading has paused before that was said."""
    go = threading.Event()

    def late(xs: Iterator[int]) -> Iterator[int]:
        go.wait(5)
        yield len(list(xs))

    peer = FakeCall(driver_of(late, limits=Limits(high_frames=4)))
    wants_input = peer.reactor._wants_input

    def wants() -> bool:
        wanted = wants_input()
        if not wanted and not go.is_set():
            (runner,) = peer.reactor.runners.values()
            go.set()
            while not runner.invocation.inputs[0].waiters:  # it has taken all, and waits for more
                time.sleep(0.001)
        return wanted

    peer.reactor._wants_input = wants
    peer.start()
    for _ in range(10):
        peer.data(b"1")
    assert await peer.half_close().end() is None
    assert peer.payloads() == [b"10"]
