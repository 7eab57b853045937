"""Async bodies on the loop."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker.codecs import codec, unregister
from invoker.errors import DecodeError, Status
from invoker.execution.bodies import loop as loop_module
from invoker.message import Message
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of


async def test_R115_a_body_that_waits_elsewhere_is_cancelled():
    """Its ``finally`` runs within the grace."""
    inside, cleaned = asyncio.Event(), asyncio.Event()

    async def sleeper(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        try:
            inside.set()
            await asyncio.sleep(3600)
            yield 1
        finally:
            cleaned.set()

    peer = FakeCall(driver_of(sleeper)).start()
    await inside.wait()
    peer.go()
    assert (await peer.end()).status is Status.CANCELLED
    await asyncio.wait_for(cleaned.wait(), 5)
    assert await peer.driver.left(5)


async def test_a_generator_that_waits_for_the_wire_is_closed():
    """Cancelled between two values: GeneratorExit reaches the ``yield``."""
    closed = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    peer = FakeCall(driver_of(numbers))
    peer.is_full = True
    peer.start()
    while not peer.is_accepted:  # noqa: ASYNC110
        await asyncio.sleep(0)
    peer.go()
    await peer.end()
    await asyncio.wait_for(closed.wait(), 5)


async def test_a_body_that_ignores_its_cancelled_inputs_is_cancelled_after_the_grace(caplog):
    """A swallowed InputCancelled does not keep it alive."""

    async def stubborn(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        try:
            async for x in xs:
                yield x
        except BaseException:
            await asyncio.sleep(3600)

    peer = FakeCall(driver_of(stubborn, grace_s=0.05)).start().data(b"1")
    await peer.outputs(1)
    peer.go()
    await peer.end()
    assert await peer.driver.left(5)
    assert "cancelled again" in caplog.text


async def test_several_readers_of_one_input_all_wake():
    """A function may read an input from tasks of its own."""

    async def both(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        first, second = await asyncio.gather(anext(xs), anext(xs))
        yield first + second

    peer = FakeCall(driver_of(both)).start()
    await asyncio.sleep(0.02)
    assert await peer.data(b"1").data(b"2").end() is None
    assert peer.payloads() == [b"3"]


async def test_a_large_payload_is_decoded_off_the_loop():
    """In a thread, with its value and its error as ever; a small one is decoded at once."""
    where = []

    @codec("text/x-slow")
    class Slow:
        def decode(self, message: Message[bytes], _: Any) -> int:
            where.append(threading.get_ident())
            return int(message.payload)

    async def same(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in xs:
            yield x

    try:
        padding = b" " * (1 << 20)
        peer = FakeCall(driver_of(same)).start()
        for payload in (b"1", b"2" + padding):
            peer.data(payload, media_type="text/x-slow")
        assert await peer.outputs(2) == [b"1", b"2"]
        assert where[0] == threading.get_ident() != where[1]
        error = await peer.data(b"x" + padding, media_type="text/x-slow").end()
        assert isinstance(error, DecodeError)
        assert "invalid literal" in str(error)
    finally:
        unregister(Slow)


class _Clock:
    """Stands in for the module `time` where messages are decoded."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.mark.parametrize("calls", [1, 10])
async def test_few_slow_messages_are_decoded_in_a_turn(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes two milliseconds and all are here, of one call or of several; nobody waits for anything else."""
    clock, turn, decoded = _Clock(), [0], list[int]()
    monkeypatch.setattr(loop_module, "time", clock)

    @codec("text/x-slow")
    class Slow:
        def decode(self, message: Message[bytes], _: Any) -> int:
            decoded.append(turn[0])
            clock.now_s += 0.002
            return len(message.payload)

    async def total(xs: AsyncIterator[int]) -> int:
        count = 0
        async for _ in xs:
            count += 1
        return count

    async def ticking() -> None:
        while True:
            await asyncio.sleep(0)
            turn[0] += 1

    try:
        driver = driver_of(total)
        peers = [FakeCall(driver).start() for _ in range(calls)]
        ticks = asyncio.ensure_future(ticking())
        for peer in peers:
            for _ in range(100 // calls):
                peer.data(b"x" * 100, media_type="text/x-slow")
            peer.half_close()
        for peer in peers:
            assert await peer.ending() is None
        ticks.cancel()
    finally:
        unregister(Slow)
    assert len(decoded) == 100
    assert max(Counter(decoded).values()) <= 4
