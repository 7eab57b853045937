"""`HoldingReactor`: the process counts what a conversation was sent until it is over (ADR 14)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from invoker.core.budget import ProcessBudget
from invoker.core.steps import Close, Event, Step
from invoker.errors import Status
from invoker.execution.loop.holding import HoldingReactor
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
