"""`HoldingReactor`: the process counts what a conversation was sent until it is over (ADR 14)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from invoker.core.budget import ProcessBudget
from invoker.core.steps import Answered, Close, EndInput, Event, Feed, Open, Step
from invoker.errors import Status
from invoker.execution.loop.holding import ArrivingReactor, HoldingReactor
from invoker.message import EMPTY, Message
from tests.execution.memory import driver_of

MIB = 1 << 20


class Cache:
    """A session that does nothing with its frames until it is told to end."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def receive(self, frame: bytes) -> Iterable[Step]:
        self.frames.append(frame)
        return (Close(),) if frame == b"end" else ()

    def half_close(self) -> Iterable[Step]:
        return ()

    def deliver(self, event: Event) -> Iterable[Step]:
        raise AssertionError(event)


class Nowhere:
    """A wire that nothing is written to."""

    headers = ()

    def accepted(self) -> None:
        """Nobody hears of it."""

    def ask(self) -> None:
        """Nothing more comes."""


@pytest.mark.parametrize("ending", ["end", "gone"])
async def test_a_frame_counts_until_the_conversation_is_over(ending: str) -> None:
    """However it ends; small ones are free, as everywhere."""
    driver = driver_of()
    closed: list[Close] = []
    reactor = HoldingReactor(Cache(), Nowhere(), driver, closed.append)
    memory: ProcessBudget = driver.engine.memory
    reactor.arrived(b"little")
    assert memory.held == 0
    reactor.arrived(bytes(3 * MIB))
    assert 3 * MIB <= memory.held <= 4 * MIB
    if ending == "end":
        reactor.arrived(b"end")
    else:
        reactor.gone()
    assert len(closed) == 1
    assert memory.held == 0


async def test_a_frame_for_which_there_is_no_room_ends_its_call_only() -> None:
    """The session does not see it, others go on, and afterwards there is room again."""
    driver = driver_of()
    driver.engine.memory.most_bytes = 10 * MIB
    closed: list[Close] = []
    first, second = (HoldingReactor(Cache(), Nowhere(), driver, closed.append) for _ in range(2))
    first.arrived(bytes(8 * MIB))
    second.arrived(bytes(8 * MIB))
    (close,) = closed
    assert close.error is not None
    assert close.error.status is Status.RESOURCE_EXHAUSTED
    assert second.session.frames == []  # type: ignore[attr-defined]  # it is ours
    first.arrived(b"end")
    third = HoldingReactor(Cache(), Nowhere(), driver, closed.append)
    third.arrived(bytes(8 * MIB))
    assert len(closed) == 2
    third.gone()


class Aside(Cache):
    """A session that opens its invocation once its request is read, and notes what is counted when that comes."""

    def __init__(self, memory: ProcessBudget) -> None:
        super().__init__()
        self.memory = memory
        self.seen = 0

    def receive(self, frame: bytes) -> Iterable[Step]:
        self.seen = self.memory.held
        return super().receive(frame)

    def deliver(self, event: Event) -> Iterable[Step]:
        if type(event) is not Answered:
            return ()
        message = Message(self.frames.pop(), EMPTY, "application/octet-stream")
        return (Open("k", "keeps"), Feed("k", 0, message), EndInput("k"))


async def keeps(data: bytes) -> int:
    """Works on what it was given until it is cut."""
    await asyncio.sleep(60)
    return len(data)


async def test_T063_a_request_counts_from_its_arrival_on_and_once() -> None:
    """Before anything is made of it; then as what its invocation was fed, and in the end not at all."""
    driver = driver_of(keeps)
    memory: ProcessBudget = driver.engine.memory
    session = Aside(memory)
    reactor = ArrivingReactor(session, Nowhere(), driver, lambda _: None)
    reactor.arrived(bytes(3 * MIB))
    assert 3 * MIB <= session.seen <= 4 * MIB
    assert memory.held == session.seen
    reactor.tell(Answered("bound", None))
    assert 3 * MIB <= memory.held <= 4 * MIB
    reactor.gone()
    await asyncio.sleep(0)
    assert memory.held == 0


async def test_T063_requests_that_come_at_once_are_refused_before_they_are_parsed() -> None:
    """The session does not see one that does not fit, and those that came before go on."""
    driver = driver_of(keeps)
    memory: ProcessBudget = driver.engine.memory
    memory.most_bytes = 10 * MIB
    closed: list[Close] = []
    first, *others = (ArrivingReactor(Aside(memory), Nowhere(), driver, closed.append) for _ in range(4))
    first.arrived(bytes(8 * MIB))
    for one in others:
        one.arrived(bytes(8 * MIB))
        assert one.session.frames == []  # type: ignore[attr-defined]  # it is ours
    assert [one.error.status for one in closed if one.error is not None] == [Status.RESOURCE_EXHAUSTED] * 3
    first.tell(Answered("bound", None))
    await asyncio.sleep(0)
    assert len(closed) == 3
    first.gone()
    await asyncio.sleep(0)
    assert memory.held == 0
