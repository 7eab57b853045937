"""Invocations that several conversations feed, own and hear of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

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
    Step,
    Terms,
)
from invoker.errors import Cancelled, InternalError, InvocationError, ShuttingDown
from invoker.message import Message
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.scripted import FakeCall, Script, echo, feed, sync_echo, two
from tests.execution.shared import JOIN, ROUND, heard, told

# Who feeds, who hears


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_two_conversations_feed_what_a_third_one_owns(house, function):
    """Its owner hears the outputs, in the order of the feeds; all three hear the end, which only the owner brings."""
    world = house(function)
    owner = world.peer(ROUND)
    first, second = world.peer(JOIN), world.peer(JOIN)
    for peer, payload in ((first, b"1"), (second, b"2"), (first, b"3")):
        peer.say(feed("round", payload))
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
    peers = [world.peer(ROUND), world.peer(ROUND), world.peer(JOIN, ROUND)]
    assert await heard(*peers) == [None, None, None]
    for peer in peers:
        assert sorted(one.index for one in peer.script.of(Emitted)) == [0, 1, 1]
        assert sorted(one.index for one in peer.script.of(OutputEnded)) == [0, 1]


async def test_an_owner_that_joins_stays_one(house):
    """And who holds it twice is told once."""
    world = house(echo)
    owner = world.peer(ROUND, JOIN, ROUND)
    owner.say(feed("round", b"1"), EndInput("round"))
    assert await heard(owner) == [None]
    assert told(owner) == [b"1"]


async def test_a_conversation_may_own_many_and_hold_others(house):
    """Its own invocation of one, a shared one, and one that it joined; each by its key."""
    world = house(echo)
    other = world.peer(Open("theirs", terms=Terms.LOOSE, is_shared=True))
    peer = world.peer(Open("own", terms=Terms.LOOSE), ROUND, Join("theirs"))
    peer.say(*(feed(key, key.encode()) for key in ("own", "round", "theirs")))
    peer.say(EndInput("own"), EndInput("round"))
    other.say(EndInput("theirs"))
    await until(lambda: len(peer.script.of(Finished)) == 3)
    assert {(one.id, one.message.payload) for one in peer.script.of(Emitted)} == {("own", b"own"), ("round", b"round")}
    assert told(other) == [b"theirs"]


async def test_what_is_not_there_cannot_be_joined(house):
    """Whether it was never there, or is over; who asks is told at once."""
    world = house(echo)
    early = world.peer(JOIN)
    owner = world.peer(ROUND, EndInput("round"))
    assert await heard(owner) == [None]
    late = world.peer(JOIN)
    for error in await heard(early, late):
        assert isinstance(error, Cancelled)
        assert "no invocation 'round': it is over, or never existed" in str(error)
    assert world.peer(Open("nobody's", function="nobody", is_shared=True)).script.of(Finished)


# Who leaves


LEAVES: dict[str, Callable[[FakeCall], object]] = {
    "closes": lambda peer: peer.reactor.arrived([Close()]),
    "is gone": lambda peer: peer.reactor.gone(),
    "fails": lambda peer: peer.reactor.fail(Cancelled("wrong")),
    "cancels": lambda peer: peer.say(Cancel("round", Cancelled("enough"))),
    "feeds what is wrong": lambda peer: peer.say(Feed("round", 7, Message(b""))),
}


@pytest.mark.parametrize("how", LEAVES)
async def test_a_feeder_that_leaves_takes_nothing_with_it(house, how):
    """What it fed stays, and the others go on; it hears no more than its own end."""
    world = house(echo)
    owner = world.peer(ROUND)
    leaver, stayer = world.peer(JOIN, feed("round", b"1")), world.peer(JOIN)
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
    first, second = world.peer(ROUND), world.peer(ROUND)
    feeder = world.peer(JOIN)
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
    owner, feeder = world.peer(ROUND), world.peer(JOIN)
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
    bad = world.peer(ROUND, answer=broken)
    good = world.peer(ROUND, feed("round", b"1"), answer=enough)
    assert isinstance((await asyncio.wait_for(bad.closed, 5)).error, InternalError)
    (error,) = await heard(good)
    assert str(error) == str(Cancelled("enough"))


async def test_a_body_that_cannot_start_ends_it_for_all():
    """There is no thread left for it."""
    driver = driver_of(sync_echo, threads=1, grace_s=0.1)
    one, other = FakeCall(driver, Script()), FakeCall(driver, Script())
    one.say(Open("own"))
    other.say(ROUND)
    feeder = FakeCall(driver, Script())
    feeder.say(JOIN)
    for error in await heard(other, feeder):
        assert error is not None
        assert error.status.name == "RESOURCE_EXHAUSTED"
    assert not driver.shared
    for peer in (one, other, feeder):
        peer.reactor.arrived([Close()])
    assert await driver.left(5)
    driver.close()


# The end of the process


async def test_a_drain_waits_for_what_is_shared_and_cuts_it(house):
    """It may be joined while it runs; its conversations are told, and none is left."""
    world = house(echo)
    owner = world.peer(ROUND)
    draining = asyncio.ensure_future(world.driver.drain(0.05))
    await asyncio.sleep(0)
    feeder = world.peer(JOIN, feed("round", b"1"))
    await until(lambda: told(owner))
    assert not draining.done()
    assert await draining is False
    for peer in (owner, feeder):
        assert isinstance((await peer.closed).error, ShuttingDown)
    assert not world.driver.shared


async def test_a_drain_ends_with_what_is_shared(house):
    """A conversation that would hold nothing any more is over, too, if it could go on for ever."""
    world = house(echo)
    owner, feeder = world.peer(ROUND), world.peer(JOIN)
    draining = asyncio.ensure_future(world.driver.drain(5))
    await asyncio.sleep(0)
    owner.say(EndInput("round"))
    await heard(owner, feeder)
    for peer in (owner, feeder):
        peer.reactor.arrived([Close()])
    assert await draining is True


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_many_feeders_come_and_go(house, function):
    """Each feeds one message and is gone; all messages arrive, and nothing is left of them."""
    world = house(function)
    owner = world.peer(ROUND)
    for number in range(200):
        device = world.peer(JOIN, feed("round", b"%d" % number))
        device.reactor.arrived([Close()]) if number % 2 else device.reactor.gone()
        assert len(world.driver.shared["round"].feeders) == 0
        await asyncio.sleep(0)
    owner.say(EndInput("round"))
    assert await heard(owner) == [None]
    assert told(owner) == [b"%d" % number for number in range(200)]
