"""Many conversations, slow peers, and memory that stays bounded."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker.core.streams import Limits
from invoker.errors import LimitExceeded
from tests.execution.loopcalls import FakeCall, until
from tests.execution.memory import driver_of


def gen(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield x * x


async def agen(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x * x


@pytest.mark.parametrize("function", [gen, agen])
async def test_R125_R012_parallel_calls_do_not_mix(function):
    """100 conversations of one driver get their own values only."""
    driver = driver_of(function)
    peers = [FakeCall(driver).start().data(b"%d" % number).half_close() for number in range(100)]
    assert await asyncio.gather(*(peer.ending() for peer in peers)) == [None] * 100
    assert await peers[0].end() is None  # nothing is left of any of them
    assert [peer.payloads() for peer in peers] == [[b"%d" % (n * n)] for n in range(100)]


async def test_R126_input_is_taken_independently_of_output():
    """A function that emits only after 100 inputs works, without a half-close."""

    def hundred(xs: Iterator[int]) -> Iterator[int]:
        yield sum(itertools.islice(xs, 100))

    peer = FakeCall(driver_of(hundred)).start()
    for _ in range(100):
        peer.data(b"1")
    assert await peer.end() is None
    assert peer.payloads() == [b"100"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_R127_RM4_a_peer_that_does_not_read_suspends_the_function(is_async):
    """The producer stalls after a bounded number of values, and goes on when the peer reads again."""
    produced = itertools.count()
    last = 0

    def numbers() -> Iterator[int]:
        nonlocal last
        for last in produced:  # noqa: UP028 - `yield from` would not tell how far it is
            yield last

    async def anumbers() -> AsyncIterator[int]:
        nonlocal last
        for last in produced:
            yield last

    peer = FakeCall(driver_of(anumbers if is_async else numbers))
    peer.is_full = True
    peer.start()
    await asyncio.sleep(0.2)
    stalled = last
    assert stalled <= 64
    await asyncio.sleep(0.1)
    assert last == stalled
    peer.take()
    assert await peer.outputs(200) == [b"%d" % n for n in range(200)]
    peer.go()
    await peer.end()
    assert await peer.driver.left(5)


@pytest.mark.parametrize("is_async", [False, True])
async def test_R128_R129_reading_pauses_at_the_mark_but_starvation_reads_on(is_async):
    """A function that lists input 1 and then input 0 gets both, far beyond the mark."""

    def second_first(a: Iterator[int], b: Iterator[int]) -> Iterator[int]:
        yield len(list(b))
        yield len(list(a))

    async def asecond_first(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        yield len([x async for x in b])
        yield len([x async for x in a])

    peer = FakeCall(driver_of(asecond_first if is_async else second_first, limits=Limits(high_frames=8))).start()
    for number in range(500):
        peer.data(b"1", number % 2)
    assert await peer.half_close().end() is None
    assert peer.payloads() == [b"250", b"250"]


async def test_R128_a_sleeping_function_stops_the_reading():
    """Frames beyond the mark stay with the transport until the function reads."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield sum([x async for x in xs])

    peer = FakeCall(driver_of(late, limits=Limits(high_frames=8))).start()
    for _ in range(100):
        peer.data(b"1")
    await asyncio.sleep(0.05)
    assert peer.reads == 9  # the start and eight frames
    go.set()
    assert await peer.half_close().end() is None
    assert peer.payloads() == [b"100"]


async def test_R130_the_hard_cap_ends_a_starving_call():
    """Endless frames for an input that nobody reads, while the function waits on the other."""

    async def other(a: AsyncIterator[int], b: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in b:
            yield x

    peer = FakeCall(driver_of(other, limits=Limits(high_frames=4, hard_frames=50))).start()
    for _ in range(60):
        peer.data(b"1", 0)
    error = await peer.end()
    assert isinstance(error, LimitExceeded)


@pytest.mark.parametrize("is_async", [False, True])
async def test_R131_R111_an_endless_output_does_not_starve_a_slow_one(is_async):
    """The slow output's value arrives; its end does not end the call."""
    go = threading.Event()

    def slow():
        go.wait(5)
        yield 7

    def both() -> tuple[Iterator[int], Iterator[int]]:
        return itertools.count(), slow()

    async def aslow():
        while not go.is_set():  # noqa: ASYNC110 - it shall stay busy
            await asyncio.sleep(0)
        yield 7

    async def acount():
        for number in itertools.count():
            yield number
            await asyncio.sleep(0)

    async def aboth() -> tuple[AsyncIterator[int], AsyncIterator[int]]:
        return acount(), aslow()

    peer = FakeCall(driver_of(aboth if is_async else both)).start("application/json", "application/json")
    await peer.outputs(50)
    go.set()
    await until(lambda: peer.payloads(1) == [b"7"])
    seen = len(peer.got)
    await until(lambda: len(peer.got) > seen + 50)
    assert not peer.is_over
    peer.go()
    await peer.end()
    assert await peer.driver.left(5)
