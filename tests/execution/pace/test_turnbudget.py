"""`invoker.execution.pace.turnbudget`: what bodies decode in one turn of the loop is bounded, all together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from invoker.execution.bodies.turns import LARGE_BYTES
from invoker.execution.pace import turnbudget
from invoker.execution.pace.turnbudget import TURN_S, TurnBudget
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of


async def decoding(budget: TurnBudget, count: int, takes_s: float, turns: int = 30) -> list[int]:
    """Bodies that decode one message after the other; how many messages in each of some turns."""
    decoded: list[int] = []

    async def body() -> None:
        while True:
            if budget.is_spent:
                await budget.next()
            decoded[-1] += 1
            budget.spend(takes_s)
            await asyncio.sleep(0) if not budget.is_spent else None

    decoded.append(0)
    bodies = [asyncio.ensure_future(body()) for _ in range(count)]
    for _ in range(turns):
        await asyncio.sleep(0)
        decoded.append(0)
    for one in bodies:
        one.cancel()
    await asyncio.gather(*bodies, return_exceptions=True)
    return decoded[:-1]


async def test_a_turn_decodes_for_as_long_as_it_may() -> None:
    """Of many bodies one goes on in each turn once the time is spent, and every turn has one."""
    decoded = await decoding(TurnBudget(), 50, TURN_S)
    assert max(decoded) == 1
    assert sum(decoded) >= len(decoded) / 3
    decoded = await decoding(TurnBudget(), 50, TURN_S / 4)
    assert max(decoded) <= 4


async def test_bodies_go_on_in_the_order_in_which_they_came() -> None:
    """And those that were cancelled meanwhile are passed over."""
    budget, order = TurnBudget(), list[int]()

    async def body(number: int) -> None:
        await budget.next()
        order.append(number)

    bodies = [asyncio.ensure_future(body(number)) for number in range(6)]
    await asyncio.sleep(0)
    budget.spend(TURN_S)
    assert budget.is_spent
    bodies[0].cancel()
    bodies[2].cancel()
    await asyncio.gather(*bodies, return_exceptions=True)
    assert order == [1, 3, 4, 5]


async def test_once_nobody_waits_the_time_of_a_turn_is_whole_again() -> None:
    """What was spent before does not count for ever, and little is not counted as much."""
    budget = TurnBudget()
    budget.spend(TURN_S / 2)
    assert not budget.is_spent
    budget.spend(TURN_S / 2)
    assert budget.is_spent
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not budget.is_spent
    budget.spend(TURN_S / 2)
    assert not budget.is_spent


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


def give(x: int) -> str:
    return "x" * x


def gives(x: Iterator[int]) -> Iterator[str]:
    for one in x:
        yield "x" * one


async def agive(x: int) -> str:
    return "x" * x


async def agives(x: AsyncIterator[int]) -> AsyncIterator[str]:
    async for one in x:
        yield "x" * one


@pytest.mark.parametrize("function", [give, gives, agive, agives], ids=lambda one: one.__name__)
async def test_few_large_values_of_many_calls_leave_in_a_turn(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes three milliseconds to be written; they are made at once.

    Two fit a turn. What counts turns has its own place in each, so that the last value of one turn and both of the next
    may lie between two of its steps.
    """
    clock, turn, written = Clock(), [0], list[int]()
    monkeypatch.setattr(turnbudget, "time", clock)

    class Slow(FakeCall):
        def write(self, frame: bytes) -> bool:
            written.append(turn[0])
            clock.now_s += 0.003
            return super().write(frame)

    async def ticking() -> None:
        while True:
            await asyncio.sleep(0)
            turn[0] += 1

    driver = driver_of(function)
    driver.threads.turns._timed = lambda work: work()  # otherwise they are made one after the other
    peers = [Slow(driver).start().data(b"%d" % (LARGE_BYTES + 1)).half_close() for _ in range(20)]
    ticks = asyncio.ensure_future(ticking())
    for peer in peers:
        assert await peer.ending() is None
    ticks.cancel()
    assert len(written) == 20
    assert max(Counter(written).values()) <= 3
