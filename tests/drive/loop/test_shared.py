"""Invocations that several conversations feed, own and hear of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

from invoker.core.steps import (
    Cancel,
    Close,
    CloseOutput,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Join,
    Open,
    OutputEnded,
    Send,
    Step,
    Terms,
    Wants,
)
from invoker.drive.driver import Driver
from invoker.drive.loop.reactor import Reactor
from invoker.errors import Cancelled, InternalError, InvocationError, LimitExceeded, ShuttingDown
from invoker.message import Message
from tests.drive.looplines import until
from tests.drive.memory import driver_of
from tests.drive.scripted import WINDOW, Line, Script, echo, feed, sync_echo, two

ROUND = Open("round", terms=Terms.LOOSE, is_shared=True)
JOIN = Join("round")


class PlainLine(Line):
    """The same wire with a reactor for one invocation, whose session keeps nothing."""

    def __init__(self, driver: Driver, script: Script) -> None:
        super().__init__(driver, script)
        self.reactor.gone()
        self.closed = asyncio.get_running_loop().create_future()
        self.reactor = Reactor(script, self, driver, self.closed.set_result)


def told(line: Line) -> list[bytes]:
    """The payloads that a conversation was told."""
    return [one.message.payload for one in line.script.of(Emitted)]


async def heard(*lines: Line) -> list[InvocationError | None]:
    """How the shared invocation ended, as each of these conversations heard it, once."""
    await until(lambda: all(one.script.of(Finished) for one in lines))
    assert [len(one.script.of(Finished)) for one in lines] == [1] * len(lines)
    return [one.script.of(Finished)[0].error for one in lines]


async def adeaf(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    await asyncio.Event().wait()
    yield ""


class House:
    """A driver, with conversations of one kind; nothing is left when they are over."""

    def __init__(self, kind: type[Line], *functions: Any) -> None:
        self.kind = kind
        self.driver = driver_of(*functions, grace_s=0.1)
        self.lines: list[Line] = []

    def line(self, *steps: Step, answer: Callable[[Event], Iterable[Step]] = lambda _: ()) -> Line:
        made = self.kind(self.driver, Script(answer))
        self.lines.append(made)
        made.reactor.arrived(steps)
        return made

    async def close(self) -> None:
        for one in self.lines:
            if not one.closed.done():
                one.reactor.arrived([Close()])
        driver = self.driver
        assert await driver.left(5)
        assert [*driver.shared, *driver.engine.running, *driver.conversations, *driver.leaving] == []
        assert not any(one.reactor.runners for one in self.lines)
        assert driver.engine.memory.held == 0
        assert [one for one in asyncio.all_tasks() if one.get_name() == "room"] == []
        driver.close()


@pytest.fixture(params=[Line, PlainLine])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., House]]:
    made: list[House] = []

    def make(*functions: Any) -> House:
        made.append(House(request.param, *functions))
        return made[-1]

    yield make
    for one in made:
        await one.close()


# Who feeds, who hears


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_two_conversations_feed_what_a_third_one_owns(house, function):
    """Its owner hears the outputs, in the order of the feeds; all three hear the end, which only the owner brings."""
    world = house(function)
    owner = world.line(ROUND)
    first, second = world.line(JOIN), world.line(JOIN)
    for line, payload in ((first, b"1"), (second, b"2"), (first, b"3")):
        line.say(feed("round", payload))
    first.say(EndInput("round"), CloseOutput("round", 0))
    second.say(feed("round", b"4"))
    await until(lambda: len(told(owner)) == 4)
    assert told(owner) == [b"1", b"2", b"3", b"4"]
    assert not first.script.events
    owner.say(EndInput("round"))
    assert await heard(owner, first, second) == [None, None, None]
    assert told(first) == told(second) == []
    first.say(feed("round", b"late"))


async def test_all_owners_hear_all_outputs(house):
    """Each of them from when on it is one; also that one of several outputs ended."""
    world = house(two)
    lines = [world.line(ROUND), world.line(ROUND), world.line(JOIN, ROUND)]
    assert await heard(*lines) == [None, None, None]
    for line in lines:
        assert sorted(one.index for one in line.script.of(Emitted)) == [0, 1, 1]
        assert sorted(one.index for one in line.script.of(OutputEnded)) == [0, 1]


async def test_an_owner_that_joins_stays_one(house):
    """And who holds it twice is told once."""
    world = house(echo)
    owner = world.line(ROUND, JOIN, ROUND)
    owner.say(feed("round", b"1"), EndInput("round"))
    assert await heard(owner) == [None]
    assert told(owner) == [b"1"]


async def test_a_conversation_may_own_many_and_hold_others(house):
    """Its own invocation of one, a shared one, and one that it joined; each by its key."""
    world = house(echo)
    other = world.line(Open("theirs", terms=Terms.LOOSE, is_shared=True))
    line = world.line(Open("own", terms=Terms.LOOSE), ROUND, Join("theirs"))
    line.say(*(feed(key, key.encode()) for key in ("own", "round", "theirs")))
    line.say(EndInput("own"), EndInput("round"))
    other.say(EndInput("theirs"))
    await until(lambda: len(line.script.of(Finished)) == 3)
    assert {(one.id, one.message.payload) for one in line.script.of(Emitted)} == {("own", b"own"), ("round", b"round")}
    assert told(other) == [b"theirs"]


async def test_what_is_not_there_cannot_be_joined(house):
    """Whether it was never there, or is over; who asks is told at once."""
    world = house(echo)
    early = world.line(JOIN)
    owner = world.line(ROUND, EndInput("round"))
    assert await heard(owner) == [None]
    late = world.line(JOIN)
    for error in await heard(early, late):
        assert isinstance(error, Cancelled)
        assert "'round' is over, or was never there" in str(error)
    assert world.line(Open("nobody's", function="nobody", is_shared=True)).script.of(Finished)


# Who leaves


LEAVES: dict[str, Callable[[Line], object]] = {
    "closes": lambda line: line.reactor.arrived([Close()]),
    "is gone": lambda line: line.reactor.gone(),
    "fails": lambda line: line.reactor.fail(Cancelled("wrong")),
    "cancels": lambda line: line.say(Cancel("round", Cancelled("enough"))),
    "feeds what is wrong": lambda line: line.say(Feed("round", 7, Message(b""))),
}


@pytest.mark.parametrize("how", LEAVES)
async def test_a_feeder_that_leaves_takes_nothing_with_it(house, how):
    """What it fed stays, and the others go on; it hears no more than its own end."""
    world = house(echo)
    owner = world.line(ROUND)
    leaver, stayer = world.line(JOIN, feed("round", b"1")), world.line(JOIN)
    LEAVES[how](leaver)
    if leaver.closed.done():
        assert leaver.reactor.arrived([feed("round", b"no")])
    else:
        leaver.say(feed("round", b"no"))
        assert len(leaver.script.of(Finished)) == 1
    stayer.say(feed("round", b"2"))
    owner.say(EndInput("round"))
    assert await heard(owner, stayer) == [None, None]
    assert told(owner) == [b"1", b"2"]
    assert len(leaver.script.of(Finished)) <= 1


@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_it_ends_with_its_last_owner(house, function, how):
    """As that one left it; before, one owner may leave and the other one still gets everything."""
    world = house(function)
    first, second = world.line(ROUND), world.line(ROUND)
    feeder = world.line(JOIN)
    LEAVES[how](first)
    feeder.say(feed("round", b"1"))
    await until(lambda: told(second))
    assert (told(first), feeder.script.of(Finished)) == ([], [])
    LEAVES[how](second)
    (error,) = await heard(feeder)
    assert isinstance(error, InvocationError)
    assert not world.driver.shared


async def test_a_body_that_fails_ends_it_for_all(house):
    """With its error; the conversations go on."""

    async def fails(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        async for x in xs:
            raise ValueError(x)
        yield ""

    world = house(fails)
    owner, feeder = world.line(ROUND), world.line(JOIN)
    feeder.say(feed("round", b"boom"))
    errors = await heard(owner, feeder)
    assert errors[0] is errors[1]
    assert "boom" in str(errors[0])
    assert not owner.closed.done()
    feeder.say(ROUND)
    assert "round" in world.driver.shared, "the key is free again"


async def test_a_session_that_fails_at_an_output_ends_its_own_conversation_only(house):
    """The other owner hears on; and the end may be told from within an output."""

    def broken(event: Event) -> Iterable[Step]:
        raise KeyError("ours")

    def enough(event: Event) -> Iterable[Step]:
        return [Cancel("round", Cancelled("enough"))] if type(event) is Emitted else ()

    world = house(echo)
    bad = world.line(ROUND, answer=broken)
    good = world.line(ROUND, feed("round", b"1"), answer=enough)
    assert isinstance((await asyncio.wait_for(bad.closed, 5)).error, InternalError)
    (error,) = await heard(good)
    assert str(error) == str(Cancelled("enough"))


async def test_a_body_that_cannot_start_ends_it_for_all():
    """There is no thread left for it."""
    driver = driver_of(sync_echo, threads=1, grace_s=0.1)
    one, other = Line(driver, Script()), Line(driver, Script())
    one.say(Open("own"))
    other.say(ROUND)
    feeder = Line(driver, Script())
    feeder.say(JOIN)
    for error in await heard(other, feeder):
        assert error is not None
        assert error.status.name == "RESOURCE_EXHAUSTED"
    assert not driver.shared
    for line in (one, other, feeder):
        line.reactor.arrived([Close()])
    assert await driver.left(5)
    driver.close()


# Pressure


async def test_feeders_are_asked_as_the_function_takes_what_they_keep():
    """Each one that has stalled an input is told when it has room again."""
    go = asyncio.Event()

    async def slow(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        await go.wait()
        async for x in xs:
            yield x

    driver = driver_of(slow)
    owner = Line(driver, Script())
    owner.say(ROUND)
    feeders = []
    for letter in (b"a", b"b"):
        feeders.append(Line(driver, Script()))
        feeders[-1].script.stalled.add(("round", 0))
        feeders[-1].say(JOIN, *[feed("round", letter)] * WINDOW)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not feeders[0].script.events
    go.set()
    await until(lambda: all(one.script.of(Wants) for one in feeders))
    assert all(one.script.of(Wants)[0] == Wants("round", 0) for one in feeders)
    await until(lambda: len(told(owner)) == 2 * WINDOW)
    for line in (*feeders, owner):
        line.say(Close())
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

    world = House(PlainLine, sync_slow if is_sync else slow)
    owner, busy, idle = world.line(ROUND), world.line(JOIN), world.line(JOIN)
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
    owner, idle = world.line(ROUND), world.line(JOIN)
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
    world = House(PlainLine, adeaf)
    world.line(ROUND)
    feeder = world.line(JOIN)
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
    world = House(Line, function)
    owner, feeder = world.line(), world.line()
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
    world = House(PlainLine, adeaf)
    owner, feeder = world.line(ROUND), world.line(JOIN)
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

    slow, quick = world.line(answer=show), world.line(answer=show)
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
    opener, owner, feeder = world.line(ROUND), world.line(ROUND), world.line(JOIN)
    opener.say(Cancel("round", Cancelled("enough")))
    share = world.driver.shared["round"].runner.invocation.budget.share
    share.end(LimitExceeded("too much"))
    for error in await heard(owner, feeder):
        assert isinstance(error, LimitExceeded)


# The end of the process


async def test_a_drain_waits_for_what_is_shared_and_cuts_it(house):
    """It may be joined while it runs; its conversations are told, and none is left."""
    world = house(echo)
    owner = world.line(ROUND)
    draining = asyncio.ensure_future(world.driver.drain(0.05))
    await asyncio.sleep(0)
    feeder = world.line(JOIN, feed("round", b"1"))
    await until(lambda: told(owner))
    assert not draining.done()
    assert await draining is False
    for line in (owner, feeder):
        assert isinstance((await line.closed).error, ShuttingDown)
    assert not world.driver.shared


async def test_a_drain_ends_with_what_is_shared(house):
    """A conversation that would hold nothing any more is over, too, if it could go on for ever."""
    world = house(echo)
    owner, feeder = world.line(ROUND), world.line(JOIN)
    draining = asyncio.ensure_future(world.driver.drain(5))
    await asyncio.sleep(0)
    owner.say(EndInput("round"))
    await heard(owner, feeder)
    for line in (owner, feeder):
        line.reactor.arrived([Close()])
    assert await draining is True


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_many_feeders_come_and_go(house, function):
    """Each feeds one message and is gone; all messages arrive, and nothing is left of them."""
    world = house(function)
    owner = world.line(ROUND)
    for number in range(200):
        device = world.line(JOIN, feed("round", b"%d" % number))
        device.reactor.arrived([Close()]) if number % 2 else device.reactor.gone()
        assert len(world.driver.shared["round"].feeders) == 0
        await asyncio.sleep(0)
    owner.say(EndInput("round"))
    assert await heard(owner) == [None]
    assert told(owner) == [b"%d" % number for number in range(200)]
