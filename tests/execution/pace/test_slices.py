"""`invoker.execution.pace.slices`: many bodies that never wait do not hold the loop together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from invoker.execution.pace.slices import MOST, SLICE, Slices
from tests.execution.loopcalls import FakeCall, until
from tests.execution.memory import driver_of

MANY = 5 * MOST


async def turns(count: int) -> None:
    """Let the loop take some turns."""
    for _ in range(count):
        await asyncio.sleep(0)


async def going_on(slices: Slices, count: int) -> list[int]:
    """Bodies that always want another slice; how many of them went on in each of some turns."""
    gone: list[int] = []

    async def body() -> None:
        while True:
            await slices.next()
            gone[-1] += 1

    bodies = [asyncio.ensure_future(body()) for _ in range(count)]
    for _ in range(20):
        gone.append(0)
        await asyncio.sleep(0)
    for one in bodies:
        one.cancel()
    await asyncio.gather(*bodies, return_exceptions=True)
    return gone


async def test_H222_few_of_many_bodies_go_on_in_a_turn() -> None:
    """All of few do, in almost each one; of many, no more than some, and never none."""
    assert (await going_on(Slices(), 1))[2:] == [1] * 18
    assert (await going_on(Slices(), MOST))[2:] == [MOST] * 18
    few = (await going_on(Slices(), 3))[2:]
    assert max(few) == 3
    assert sum(few) >= 3 * 18 * 7 / 8
    gone = await going_on(Slices(), MANY)
    assert max(gone) <= 2 * MOST
    assert gone[5:] == [MOST] * 15


async def test_H222_bodies_go_on_in_the_order_in_which_they_came() -> None:
    """So none of them is forgotten for another one."""
    slices, order = Slices(), list[int]()

    async def body(number: int) -> None:
        for _ in range(3):
            await slices.next()
            order.append(number)

    async with asyncio.TaskGroup() as bodies:
        for number in range(MANY):
            bodies.create_task(body(number))
    assert order == list(range(MANY)) * 3


async def test_H222_a_body_that_is_cancelled_takes_nobodys_place() -> None:
    """And once nobody waits, the loop may sleep."""
    slices, went = Slices(), list[int]()

    async def body(number: int) -> None:
        await slices.next()
        went.append(number)

    bodies = [asyncio.ensure_future(body(number)) for number in range(3 * MOST)]
    await turns(1)
    for one in bodies[MOST : 2 * MOST]:
        one.cancel()
    await asyncio.gather(*bodies, return_exceptions=True)
    assert went == [*range(MOST), *range(2 * MOST, 3 * MOST)]
    await turns(2)
    assert not asyncio.get_running_loop()._ready  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_full", [False, True])
async def test_H222_streams_that_never_wait_take_turns(is_full: bool) -> None:
    """Also behind a wait for room, which comes to all of them in the same turn."""
    given = [0]

    async def endless(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        while True:
            given[-1] += 1
            yield 1

    driver = driver_of(endless)
    peers = [FakeCall(driver).start().data(b"1") for _ in range(MANY)]
    if is_full:
        for one in peers:
            one.is_full = True
        await until(lambda: all(one.waits.is_set() for one in peers))
        for one in peers:
            one.take()
    for _ in range(30):
        given.append(0)
        await asyncio.sleep(0)
    assert max(given[4:]) <= 2 * MOST * SLICE
    assert min(given[4:]) > 0
    for one in peers:
        one.reactor.gone()
    await until(lambda: not driver.leaving)


async def test_H222_of_many_bodies_that_come_at_once_some_begin_in_a_turn() -> None:
    """Where no transport begins them; all of them do in the end."""
    begun = [0]

    async def source() -> AsyncIterator[int]:
        begun[-1] += 1
        yield 1

    driver = driver_of(source)
    peers = [FakeCall(driver).start().half_close() for _ in range(200)]
    while sum(begun) < len(peers):
        begun.append(0)
        await asyncio.sleep(0)
    assert max(begun) == 64
    for one in peers:
        assert await one.ending() is None
