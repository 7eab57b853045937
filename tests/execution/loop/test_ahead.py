"""`AheadReactor`: a function that goes on while its peer is slow, as far as a bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest

from invoker.core.steps import Close, Emitted, EndInput, Event, Feed, Finished, Open, Send, Step
from invoker.errors import Status
from invoker.execution.loop.ahead import AheadReactor, BufferFull
from invoker.message import Message
from tests.execution.memory import driver_of


class Ahead:
    """A session that opens one invocation, sends what that gives, and says ``end`` behind it."""

    def __init__(self, ahead_bytes: int) -> None:
        self.ahead_bytes = ahead_bytes
        self.error: Any = None

    def receive(self, frame: bytes) -> Iterable[Step]:
        return (Open("a"), Feed("a", 0, Message(frame, media_type="application/json")), EndInput("a"))

    def half_close(self) -> Iterable[Step]:
        return ()

    def deliver(self, event: Event) -> Iterable[Step]:
        if isinstance(event, Emitted):
            return (Send(event.message.payload),)
        assert isinstance(event, Finished)
        self.error = event.error
        return (Send(b"end"), Close())


class SlowWire:
    """A wire with room for one frame, until the peer takes it."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.is_gone = False
        self.closed = asyncio.Event()
        self._room = asyncio.Event()

    def accepted(self) -> None:
        pass

    def ask(self) -> None:
        pass

    def write(self, frame: bytes) -> bool:
        assert not self.closed.is_set(), "a frame behind the ending"
        if not self.is_gone:
            self.got.append(frame)
        return self._room.is_set()

    async def room(self) -> None:
        await self._room.wait()

    def close(self, close: Close) -> None:
        assert close.error is None or self.is_gone
        self.closed.set()

    def take_all(self) -> None:
        self._room.set()

    def go(self, reactor: AheadReactor) -> None:
        self.is_gone = True
        self._room.set()
        reactor.gone()


class Run:
    """A function that gives texts of a hundred bytes, or of others."""

    def __init__(self, ahead_bytes: int, count: int = 20, sizes: Sequence[int] = ()) -> None:
        self.given = 0
        self.left = asyncio.Event()
        self.session = Ahead(ahead_bytes)
        self.wire = SlowWire()

        async def texts(x: int) -> AsyncIterator[str]:
            try:
                for size in sizes or [100] * count:
                    self.given += 1
                    yield "x" * (size - 2)
            finally:
                self.left.set()

        self.driver = driver_of(texts)
        self.reactor = AheadReactor(self.session, self.wire, self.driver, self.wire.close)
        self.reactor.arrived(b"1")
        self.reactor.arrived(None)


async def settled(run: Run) -> int:
    """How much was given once nothing moves any more."""
    seen = -1
    while seen != run.given:
        seen = run.given
        for _ in range(20):
            await asyncio.sleep(0)
    return seen


async def test_T081_without_a_bound_the_function_waits_for_its_peer():
    """It is one item ahead."""
    run = Run(0)
    assert await settled(run) <= 2
    run.wire.take_all()
    await run.wire.closed.wait()
    assert len(run.wire.got) == 21


async def test_T082_the_function_goes_on_within_the_bound():
    """It ends before the peer takes anything; nothing is dropped, and the ending is behind it."""
    run = Run(10_000)
    await run.left.wait()
    assert run.given == 20
    assert len(run.wire.got) == 1
    assert not run.wire.closed.is_set()
    run.wire.take_all()
    await run.wire.closed.wait()
    assert len(run.wire.got) == 21
    assert run.wire.got[-1] == b"end"
    assert run.session.error is None


async def test_T082_beyond_the_bound_the_invocation_ends():
    """What was given before still comes, and the session tells of it behind."""
    run = Run(500)
    await run.left.wait()
    assert run.given < 10
    run.wire.take_all()
    await run.wire.closed.wait()
    assert isinstance(run.session.error, BufferFull)
    assert run.session.error.status is Status.RESOURCE_EXHAUSTED
    assert run.session.error.details == {"code": "stream_buffer", "limit": "500"}
    assert len(run.wire.got) == run.given + 1
    assert run.wire.got[-1] == b"end"


@pytest.mark.parametrize("sizes", [(600, 100), (100, 600, 100), (100, 100, 600, 600, 100), (100, 100, 100, 1200, 100)])
async def test_T080_one_value_above_the_bound_makes_its_function_wait(sizes):
    """Wherever it comes; it is no reason to end, and what comes behind it is given once it is written."""
    run = Run(500, sizes=sizes)
    large = next(at for at, size in enumerate((*sizes[1:], 501), 1) if size > 500)
    assert await settled(run) == min(large + 1, len(sizes))
    assert run.session.error is None
    run.wire.take_all()
    await run.wire.closed.wait()
    assert run.session.error is None
    assert [len(one) for one in run.wire.got] == [*sizes, 3]


async def test_a_peer_that_is_gone_ends_a_function_that_waits_with_a_large_value():
    run = Run(500, sizes=(100, 600, 100))
    assert await settled(run) == 2
    run.wire.go(run.reactor)
    await run.left.wait()
    assert await run.driver.left(5)
    assert run.given == 2


@pytest.mark.parametrize("ahead_bytes", [0, 1_000_000_000])
async def test_a_peer_that_is_gone_ends_everything(ahead_bytes):
    """The function is closed, and nothing waits any more."""
    run = Run(ahead_bytes, count=1_000_000)
    await (settled(run) if not ahead_bytes else asyncio.sleep(0))
    run.wire.go(run.reactor)
    await run.left.wait()
    assert await run.driver.left(5)
    assert len(run.wire.got) <= 2


async def test_a_slow_peer_that_catches_up_is_not_behind_any_more():
    """What it has taken does not count."""
    run = Run(500, count=5)
    await run.left.wait()
    run.wire.take_all()
    await run.wire.closed.wait()
    assert run.session.error is None
    assert len(run.wire.got) == 6
