"""Invocations that several conversations feed: who is read, who waits for whom, and what is too much."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from invoker.core.steps import (
    Cancel,
    Close,
    Emitted,
    EndInput,
    Event,
    Send,
    Step,
    Wants,
)
from invoker.errors import Cancelled, LimitExceeded
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.scripted import WINDOW, FakeCall, Script, echo, feed, sync_echo
from tests.execution.shared import JOIN, ROUND, House, PlainCall, adeaf, heard, told


async def test_feeders_are_asked_as_the_function_takes_what_they_keep():
    """Each one that has stalled an input is told when it has room again."""
    go = asyncio.Event()

    async def slow(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        await go.wait()
        async for x in xs:
            yield x

    driver = driver_of(slow)
    owner = FakeCall(driver, Script())
    owner.say(ROUND)
    feeders = []
    for letter in (b"a", b"b"):
        feeders.append(FakeCall(driver, Script()))
        feeders[-1].script.stalled.add(("round", 0))
        feeders[-1].say(JOIN, *[feed("round", letter)] * WINDOW)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not feeders[0].script.events
    go.set()
    await until(lambda: all(one.script.of(Wants) for one in feeders))
    assert all(one.script.of(Wants)[0] == Wants("round", 0) for one in feeders)
    await until(lambda: len(told(owner)) == 2 * WINDOW)
    for peer in (*feeders, owner):
        peer.say(Close())
    assert await driver.left(5)
    driver.close()


@pytest.mark.parametrize("is_sync", [True, False])
async def test_a_feeder_is_not_read_while_the_function_is_behind(is_sync):
    """Whoever fed it last; it is read again when the function has taken most of it."""
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def slow(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        await go.wait()
        async for x in xs:
            yield x

    def sync_slow(xs: Iterator[str]) -> Iterator[str]:
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result(10)
        yield from xs

    world = House(PlainCall, sync_slow if is_sync else slow)
    owner, busy, idle = world.peer(ROUND), world.peer(JOIN), world.peer(JOIN)
    count = 0
    while busy.reactor.arrived([feed("round")]):
        count += 1
    assert not idle.reactor.arrived([])
    assert (busy.asks, idle.asks) == (0, 0)
    go.set()
    await until(lambda: busy.asks and idle.asks)
    owner.say(EndInput("round"))
    assert await heard(owner, busy, idle) == [None] * 3
    assert (len(told(owner)), busy.asks, idle.asks) == (count + 1, 1, 1)
    await world.close()


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_of_many_feeders_those_are_told_of_room_that_wait_for_it(house, function):
    """Else each message would cost as much as there are conversations."""
    world = house(function)
    owner, idle = world.peer(ROUND), world.peer(JOIN)
    told_of_room: list[int] = []
    idle.reactor.resume = lambda: told_of_room.append(len(told(owner)))
    for number in range(50):
        owner.say(feed("round", b"%d" % number))
        await until(lambda number=number: len(told(owner)) > number)
    assert told_of_room == []
    owner.say(EndInput("round"))
    await heard(idle)
    assert told_of_room == [50]


async def test_a_feeder_that_waits_for_room_waits_until_there_is_some():
    """Though others were told before; but not after it has left, even in the middle of being told."""
    world = House(PlainCall, adeaf)
    world.peer(ROUND)
    feeder = world.peer(JOIN)
    while feeder.reactor.arrived([feed("round")]):
        pass
    shared = world.driver.shared["round"]
    shared.resume()
    assert (shared.is_paused, feeder.asks) == (True, 0)
    feeder.reactor.resume = feeder.reactor.gone
    shared.resume()
    assert not shared.is_paused
    await world.close()


@pytest.mark.parametrize("is_owner", [True, False])
@pytest.mark.parametrize("is_late", [True, False])
@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_who_wants_to_hears_that_the_function_waits(function, is_owner, is_late):
    """From when on its session says so, before or after it took hold of the invocation."""
    world = House(FakeCall, function)
    owner, feeder = world.peer(), world.peer()
    listener = owner if is_owner else feeder
    listener.script.hears_waits = not is_late
    owner.say(ROUND)
    feeder.say(JOIN)
    if is_late:
        listener.script.hears_waits = True
        listener.say()
    await until(lambda: Wants("round", 0, waits=True) in listener.script.events)
    await world.close()


async def test_a_feeder_that_is_not_read_is_read_again_when_it_ends():
    """Nobody would take what it sent, and it may have more to say."""
    world = House(PlainCall, adeaf)
    owner, feeder = world.peer(ROUND), world.peer(JOIN)
    while feeder.reactor.arrived([feed("round")]):
        pass
    assert feeder.asks == 0
    owner.say(Cancel("round", Cancelled("enough")))
    await heard(owner, feeder)
    assert feeder.asks == 1
    await world.close()


async def test_a_slow_owner_suspends_the_body_until_it_leaves(house):
    """The other owner gets the rest then; who leaves with the peer that does not read keeps nobody."""

    async def ticks() -> AsyncIterator[str]:
        for number in range(3):
            yield str(number)

    world = house(ticks)

    def show(event: Event) -> Iterable[Step]:
        return [Send(event.message.payload)] if type(event) is Emitted else ()

    slow, quick = world.peer(answer=show), world.peer(answer=show)
    slow.is_full = True
    slow.say(ROUND)
    quick.say(ROUND)
    await slow.waits.wait()
    assert quick.got == [b"0"]
    slow.reactor.gone()
    assert await heard(quick) == [None]
    assert quick.got == [b"0", b"1", b"2"]


async def test_what_holds_too_much_of_the_process_ends_for_all(house):
    """Though who opened it holds it no more."""
    world = house(echo)
    opener, owner, feeder = world.peer(ROUND), world.peer(ROUND), world.peer(JOIN)
    opener.say(Cancel("round", Cancelled("enough")))
    budget = world.driver.shared["round"].runner.invocation.budget
    budget.end(LimitExceeded("too much"))
    for error in await heard(owner, feeder):
        assert isinstance(error, LimitExceeded)
