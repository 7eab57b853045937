"""Sessions of many invocations on the loop, with a session whose answers are written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from invoker.core.steps import (
    ALL,
    Cancel,
    Close,
    CloseOutput,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
    Step,
    Terms,
    Wants,
)
from invoker.errors import Cancelled
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.scripted import WINDOW, FakeCall, Script, echo, feed, sync_echo, two


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_several_invocations_of_one_session_run_side_by_side(function):
    """Each is fed, ended and told by its own key; the session is open until it says Close."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) is Emitted:
            return [Send((event.id, event.message.payload))]
        done = len(script.of(Finished)) == 2
        return [Send("last"), Close(None)] if done else ()

    script = Script(answer)
    peer = FakeCall(driver_of(function), script)
    assert peer.accepted_with[0] == (("a", "b"),)
    peer.say(Open("a", terms=Terms.LOOSE), Open("b", terms=Terms.LOOSE), feed("b", b"1"))
    peer.say(feed("a", b"2"), EndInput("a", 0))
    await until(lambda: len(script.of(Finished)) == 1)
    peer.say(EndInput("b", ALL))
    assert await peer.end() is None
    assert sorted(peer.got[:-1]) == [("a", b"2"), ("b", b"1")]
    assert peer.got[-1] == "last"


async def test_what_an_event_causes_is_done_behind_what_is_there():
    """A refused Open is Finished before the frames that follow it are sent, yet its answer comes after them."""
    script = Script(lambda event: [Send(("finished", event.id))] if type(event) is Finished else ())
    peer = FakeCall(driver_of(echo), script)
    peer.say(Open("a", function="nobody"), Send(1), Send(2))
    assert peer.got == [1, 2, ("finished", "a")]
    peer.say(Close(None))
    assert await peer.end() is None


async def test_reading_pauses_while_the_session_is_full():
    """The wire is told so by `arrived`, and asked once for more when the session has room again."""

    def answer(event: Event) -> Iterable[Step]:
        script.is_full = len(script.of(Emitted)) < 3
        return [Open("b", function="nobody")] if type(event) is Emitted else ()  # so that one event causes another

    script = Script(answer)
    peer = FakeCall(driver_of(echo), script)
    peer.say(Open("a"))
    script.is_full = True
    assert not peer.reactor.arrived([feed("a", b"1"), feed("a", b"2")])
    await until(lambda: len(script.of(Emitted)) == 2)
    assert peer.asks == 0
    assert not peer.reactor.arrived([feed("a", b"3")])
    await until(lambda: peer.asks)
    peer.say(EndInput("a"))
    await until(lambda: script.of(Finished)[-1].id == "a")
    assert peer.asks == 1
    peer.reactor.fail(Cancelled("enough"))
    assert isinstance(await peer.end(), Cancelled)


async def test_a_long_chain_of_events_needs_no_stack():
    """Each refusal opens the next invocation, ten thousand times."""

    def answer(event: Event) -> Iterable[Step]:
        number = int(event.id) + 1  # type: ignore[union-attr]
        return [Open(str(number), function="nobody")] if number < 10_000 else [Close(None)]

    peer = FakeCall(driver_of(echo), Script(answer))
    peer.say(Open("0", function="nobody"))
    assert await peer.end() is None


async def test_an_output_may_feed_another_invocation_while_both_run():
    """The second one gives its first value before the first one's input has ended."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) is Emitted:
            return [Feed("b", 0, event.message)] if event.id == "a" else [Send(event.message.payload)]
        return [EndInput("b", 0)] if event == Finished("a") else [Close(None)]

    peer = FakeCall(driver_of(echo), Script(answer))
    peer.say(Open("a", terms=Terms.LOOSE), Open("b", terms=Terms.LOOSE), feed("a", b"1"))
    await until(lambda: peer.got == [b"1"])
    peer.say(feed("a", b"2"), EndInput("a", 0))
    assert await peer.end() is None
    assert peer.got == [b"1", b"2"]


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_a_stalled_input_is_wanted_once_its_function_has_caught_up(function):
    """The session feeds a window at a time; nothing is lost, and nobody waits for ever."""
    left = 100

    def more(event: Event) -> Iterable[Step]:
        nonlocal left
        if type(event) is not Wants:
            return [Close(None)] if type(event) is Finished else ()
        stream = peer.reactor.runners["a"].invocation.inputs[0]
        assert len(stream.queue) <= WINDOW // 2
        count = min(left, WINDOW - len(stream.queue))
        left -= count
        if left == 0:
            script.stalled.clear()
            return [*(feed("a") for _ in range(count)), EndInput("a", 0)]
        return [feed("a") for _ in range(count)]

    script = Script(more)
    peer = FakeCall(driver_of(function), script)
    script.stalled.add(("a", 0))
    peer.say(Open("a"))
    assert peer.reactor.is_paused
    assert await peer.end() is None
    assert len(script.of(Emitted)) == 100
    assert not peer.reactor.is_paused


async def test_an_input_that_is_full_is_not_wanted():
    """Until the function takes more than half of the window."""
    go = asyncio.Event()

    async def late(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        await go.wait()
        async for x in xs:
            yield x

    def answer(event: Event) -> Iterable[Step]:
        if type(event) is Wants:
            script.stalled.clear()
            return [EndInput("a", 0)]
        return [Close(None)] if type(event) is Finished else ()

    script = Script(answer)
    peer = FakeCall(driver_of(late), script)
    script.stalled.add(("a", 0))
    peer.say(Open("a"), *(feed("a") for _ in range(WINDOW)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not script.events
    go.set()
    assert await peer.end() is None
    assert script.of(Wants) == [Wants("a", 0)]


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_E114_waits_are_heard_after_the_half_close_only(function):
    """Of an input that is empty and open, whether its reader waited before or not."""
    script = Script(lambda event: [Close(None)] if type(event) is Wants else ())
    peer = FakeCall(driver_of(function), script)
    peer.say(Open("a"))
    await until(lambda: peer.reactor.runners["a"].invocation.inputs[0].waiters)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not script.events
    peer.reactor.arrived(None)
    assert await peer.end() is None
    assert script.events == [Wants("a", 0, waits=True)]


async def test_the_session_hears_of_the_end_of_each_of_several_outputs():
    """After the last message of each."""
    script = Script(lambda event: [Close(None)] if type(event) is Finished else ())
    peer = FakeCall(driver_of(two), script)
    peer.say(Open("a"))
    assert await peer.end() is None
    assert {one.index for one in script.of(OutputEnded)} == {0, 1}
    assert script.events.index(OutputEnded("a", 1)) > max(
        number for number, one in enumerate(script.events) if type(one) is Emitted and one.index == 1
    )


async def test_E119_an_output_that_nobody_reads_is_closed():
    """The function's generator is closed; with the only one of it the invocation ends."""
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                await asyncio.sleep(0)
        finally:
            closed.set()

    script = Script(lambda event: [Close(None)] if type(event) is Finished else ())
    peer = FakeCall(driver_of(endless), script)
    peer.say(Open("a"))
    await until(lambda: script.of(Emitted))
    peer.say(CloseOutput("a", 0), CloseOutput("nobody", 0))
    await asyncio.wait_for(closed.wait(), 5)
    peer.say(Cancel("a", Cancelled("enough")))
    await peer.end()
