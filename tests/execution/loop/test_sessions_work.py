"""Sessions of many invocations on the loop, what they fetch, when they are told the time, and how they go on or end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

from invoker.core.steps import (
    Close,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Fetch,
    Fetched,
    Finished,
    Open,
    Send,
    Step,
    Timer,
    Wants,
)
from invoker.errors import Cancelled, FunctionError, InternalError, LimitExceeded, ShuttingDown
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.scripted import WINDOW, FakeCall, Script, echo, feed, sync_echo


async def test_E056_pieces_of_a_reference_are_delivered_as_they_come():
    """Each at once, then the end; an error is an end."""
    steps: list[Any] = []

    async def fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        steps.append((uri, most))
        deliver(b"1")
        await asyncio.sleep(0)
        if uri == "bad":
            raise LimitExceeded("too much")
        if uri == "ugly":
            raise RuntimeError("secret")
        deliver(b"2")

    script = Script()
    peer = FakeCall(driver_of(echo), script, fetch)
    for uri in ("good", "bad", "ugly"):
        peer.say(Fetch(uri, uri, 10))
    await until(lambda: sum(one.is_last for one in script.events) == 3)
    assert steps == [("good", 10), ("bad", 10), ("ugly", 10)]
    by_key = {key: [one for one in script.of(Fetched) if one.key == key] for key in ("good", "bad", "ugly")}
    assert by_key["good"] == [Fetched("good", b"1"), Fetched("good", b"2"), Fetched("good", is_last=True)]
    assert isinstance(by_key["bad"][-1].error, LimitExceeded)
    assert isinstance(by_key["ugly"][-1].error, InternalError)
    peer.say(Close(None))
    await peer.end()


async def test_what_is_fetched_is_given_up_with_the_session():
    """And the end of the process waits for it."""
    given_up = asyncio.Event()

    async def fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    peer = FakeCall(driver_of(echo), Script(), fetch)
    peer.say(Fetch("k", "u", 1))
    await asyncio.sleep(0)
    peer.say(Close(None))
    assert await peer.end() is None
    assert given_up.is_set()


async def test_a_later_timer_replaces_an_earlier_one():
    """One Elapsed, and none after the end."""
    script = Script(lambda _: [Timer(30)])
    peer = FakeCall(driver_of(echo), script)
    peer.say(Timer(30), Timer(0.001))
    await until(lambda: script.events)
    assert script.events == [Elapsed()]
    peer.say(Timer(0), Close(None))
    await peer.end()
    await asyncio.sleep(0.002)
    assert script.events == [Elapsed()]


async def test_E110_a_peer_that_does_not_read_suspends_functions_only():
    """Frames are taken as before."""
    script = Script(lambda event: [Send(1)] if type(event) is Emitted else [Close(None)])
    peer = FakeCall(driver_of(echo), script)
    peer.is_full = True
    peer.say(Open("a"), feed("a"), feed("a"), EndInput("a", 0))
    await peer.waits.wait()
    peer.say(Open("b"), Send(2))
    assert peer.got == [1, 2]
    peer.is_full = False
    peer.has_room.set()
    assert await peer.end() is None
    assert peer.got == [1, 2, 1]


async def test_E112_a_failing_action_sends_what_it_gave_before():
    """Then comes the status; other invocations are cancelled."""

    async def fails(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        yield "1"
        yield "2"
        async for _ in xs:
            raise ValueError("no")

    def answer(event: Event) -> Iterable[Step]:
        return [Send(event.id)] if type(event) is Emitted else [Close(event.error)]  # type: ignore[union-attr]

    peer = FakeCall(driver_of(fails), Script(answer))
    peer.say(Open("a"), Open("b"), feed("a"))
    assert isinstance(await peer.end(), FunctionError)
    assert peer.got.count("a") == 2


@pytest.mark.parametrize(
    ("raised", "ending"), [(LimitExceeded("x"), LimitExceeded), (RuntimeError("x"), InternalError)]
)
@pytest.mark.parametrize("where", ["receive", "deliver"])
async def test_a_session_that_raises_is_over(raised, ending, where):
    """With its own error, or with ours and no detail; its invocations are cancelled."""

    def answer(_: Event) -> Iterable[Step]:
        raise raised

    peer = FakeCall(driver_of(echo), Script(answer))
    peer.say(Open("a"))
    if where == "receive":
        peer.reactor.arrived(raised)
    else:
        peer.say(feed("a"))
    assert isinstance(await peer.end(), ending)
    assert peer.reactor.arrived([Send(1)])  # what comes later is discarded
    assert peer.got == []


async def test_E010_a_peer_that_is_gone_cancels_everything():
    """The session need not hear of it."""
    script = Script()
    peer = FakeCall(driver_of(echo, sync_echo), script)
    peer.say(Open("a", function="echo"), Open("b", function="sync_echo"))
    peer.is_gone = True
    peer.reactor.gone()
    assert isinstance(await peer.end(), Cancelled)
    assert not script.of(Finished)


async def test_ET93_an_idle_session_ends_when_the_process_drains():
    """One with an invocation ends after it."""
    driver = driver_of(echo)
    idle, busy = FakeCall(driver, Script()), FakeCall(driver, Script())
    busy.say(Open("a"))
    drained = asyncio.ensure_future(driver.drain(5))
    assert isinstance((await asyncio.wait_for(idle.closed, 5)).error, ShuttingDown)
    assert not busy.closed.done()
    busy.say(EndInput("a", 0))
    assert isinstance(await busy.end(), ShuttingDown)
    assert await drained


async def test_ET93_a_session_that_does_not_end_is_cut():
    """At the end of the drain."""
    driver = driver_of(echo)
    peer = FakeCall(driver, Script())
    peer.say(Open("a"))
    assert not await driver.drain(0.01)
    assert isinstance(await peer.end(), ShuttingDown)


async def test_a_thread_that_takes_all_at_once_is_fed_again():
    """A sync function is quicker than the loop: it has emptied its input before the loop looks."""
    taken = threading.Event()
    total = 2000

    def quick(xs: Iterator[str]) -> Iterator[int]:
        count = 0
        for _ in xs:
            count += 1
            taken.set()
        yield count

    left = total

    def more(event: Event) -> Iterable[Step]:
        nonlocal left
        if type(event) is not Wants:
            return [Close(None)] if type(event) is Finished else ()
        count = min(left, WINDOW)
        left -= count
        if not left:
            script.stalled.clear()
            return [*(feed("a") for _ in range(count)), EndInput("a", 0)]
        return [feed("a") for _ in range(count)]

    script = Script(more)
    peer = FakeCall(driver_of(quick), script)
    script.stalled.add(("a", 0))
    peer.say(Open("a"), feed("a"))
    assert await peer.end() is None
    assert script.of(Emitted)[0].message.payload == b"%d" % (total + 1)
