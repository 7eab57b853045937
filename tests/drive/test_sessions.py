"""Sessions of many invocations on the loop, with a session whose answers are written down."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

from invoker.core.steps import (
    ALL,
    Cancel,
    Close,
    CloseOutput,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Fetch,
    Fetched,
    Finished,
    Open,
    OutputEnded,
    Send,
    Step,
    Timer,
    Wants,
)
from invoker.drive.sessions import SessionReactor
from invoker.errors import Cancelled, FunctionError, InternalError, InvocationError, LimitExceeded, ShuttingDown
from invoker.message import Message
from tests.drive.looplines import until
from tests.drive.memory import driver_of

WINDOW = 8


class Script:
    """A session whose frames are lists of steps, and which answers events by a function.

    Attributes:
        events: What was delivered.
        answer: Gives the steps for an event.
    """

    def __init__(self, answer: Callable[[Event], Iterable[Step]] = lambda _: ()) -> None:
        self.headers: tuple[tuple[str, str], ...] = (("a", "b"),)
        self.stalled: set[tuple[str, int]] = set()
        self.is_half_closed = False
        self.events: list[Event] = []
        self.answer = answer
        self.released = 0

    def receive(self, frame: Any) -> Iterable[Step]:
        if isinstance(frame, BaseException):
            raise frame
        return list(frame)

    def half_close(self) -> Iterable[Step]:
        self.is_half_closed = True
        return ()

    def deliver(self, event: Event) -> Iterable[Step]:
        self.events.append(event)
        return self.answer(event)

    def release(self) -> None:
        self.released += 1

    def of(self, kind: type) -> list[Any]:
        """The events of one kind."""
        return [one for one in self.events if type(one) is kind]


class Line:
    """A wire in memory, with a reactor at its end."""

    def __init__(self, driver: Any, script: Script, fetch: Any = None) -> None:
        self.is_gone = self.is_full = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self.accepted_with: list[Any] = []
        self.got: list[Any] = []
        self.waits, self.has_room = asyncio.Event(), asyncio.Event()
        self.closed: asyncio.Future[InvocationError | None] = asyncio.get_running_loop().create_future()
        self.driver, self.script = driver, script
        self.reactor = SessionReactor(script, self, driver, self.closed.set_result, window=WINDOW, fetch=fetch)

    def accepted(self) -> None:
        self.accepted_with.append(self.headers)

    def ask(self) -> None:
        raise AssertionError("a session never pauses")

    def write(self, frame: Any) -> bool:
        assert not self.closed.done(), "a frame behind the status"
        self.got.append(frame)
        return not self.is_full

    async def room(self) -> None:
        self.waits.set()
        await self.has_room.wait()

    def say(self, *steps: Step) -> None:
        """The peer's next frame."""
        assert self.reactor.arrived(steps)

    async def end(self) -> InvocationError | None:
        """How the session ended; nothing is left of it."""
        error = await asyncio.wait_for(asyncio.shield(self.closed), 5)
        assert await self.driver.left(5)
        assert not self.driver.engine.running
        assert not self.driver.conversations
        assert not self.driver.drains
        assert not self.reactor.runners
        assert self.script.released == 1, "E-003"
        return error


def feed(key: str, payload: bytes = b"x", index: int = 0) -> Feed:
    return Feed(key, index, Message(payload, media_type="text/plain"))


async def echo(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    async for x in xs:
        yield x


def sync_echo(xs: Iterator[str]) -> Iterator[str]:
    yield from xs


async def two() -> tuple[AsyncIterator[str], AsyncIterator[str]]:
    async def some(count: int) -> AsyncIterator[str]:
        for _ in range(count):
            yield "x"

    return some(1), some(2)


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_several_invocations_of_one_session_run_side_by_side(function):
    """Each is fed, ended and told by its own key; the session is open until it says Close."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) is Emitted:
            return [Send((event.id, event.message.payload))]
        done = len(script.of(Finished)) == 2
        return [Send("last"), Close(None)] if done else ()

    script = Script(answer)
    line = Line(driver_of(function), script)
    assert line.accepted_with[0] == (("a", "b"),)
    line.say(Open("a", by_value=True), Open("b", by_value=True), feed("b", b"1"))
    line.say(feed("a", b"2"), EndInput("a", 0))
    await until(lambda: len(script.of(Finished)) == 1)
    line.say(EndInput("b", ALL))
    assert await line.end() is None
    assert sorted(line.got[:-1]) == [("a", b"2"), ("b", b"1")]
    assert line.got[-1] == "last"


async def test_what_an_event_causes_is_done_behind_what_is_there():
    """A refused Open is Finished before the frames that follow it are sent, yet its answer comes after them."""
    script = Script(lambda event: [Send(("finished", event.id))] if type(event) is Finished else ())
    line = Line(driver_of(echo), script)
    line.say(Open("a", function="nobody"), Send(1), Send(2))
    assert line.got == [1, 2, ("finished", "a")]
    line.say(Close(None))
    assert await line.end() is None


async def test_a_long_chain_of_events_needs_no_stack():
    """Each refusal opens the next invocation, ten thousand times."""

    def answer(event: Event) -> Iterable[Step]:
        number = int(event.id) + 1  # type: ignore[union-attr]
        return [Open(str(number), function="nobody")] if number < 10_000 else [Close(None)]

    line = Line(driver_of(echo), Script(answer))
    line.say(Open("0", function="nobody"))
    assert await line.end() is None


async def test_an_output_may_feed_another_invocation_while_both_run():
    """The second one gives its first value before the first one's input has ended."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) is Emitted:
            return [Feed("b", 0, event.message)] if event.id == "a" else [Send(event.message.payload)]
        return [EndInput("b", 0)] if event == Finished("a") else [Close(None)]

    line = Line(driver_of(echo), Script(answer))
    line.say(Open("a", by_value=True), Open("b", by_value=True), feed("a", b"1"))
    await until(lambda: line.got == [b"1"])
    line.say(feed("a", b"2"), EndInput("a", 0))
    assert await line.end() is None
    assert line.got == [b"1", b"2"]


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_a_stalled_input_is_wanted_once_its_function_has_caught_up(function):
    """The session feeds a window at a time; nothing is lost, and nobody waits for ever."""
    left = 100

    def more(event: Event) -> Iterable[Step]:
        nonlocal left
        if type(event) is not Wants:
            return [Close(None)] if type(event) is Finished else ()
        stream = line.reactor.runners["a"].invocation.inputs[0]
        assert len(stream.queue) <= WINDOW // 2
        count = min(left, WINDOW - len(stream.queue))
        left -= count
        if left == 0:
            script.stalled.clear()
            return [*(feed("a") for _ in range(count)), EndInput("a", 0)]
        return [feed("a") for _ in range(count)]

    script = Script(more)
    line = Line(driver_of(function), script)
    script.stalled.add(("a", 0))
    line.say(Open("a"))
    assert line.reactor.is_paused
    assert await line.end() is None
    assert len(script.of(Emitted)) == 100
    assert not line.reactor.is_paused


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
    line = Line(driver_of(late), script)
    script.stalled.add(("a", 0))
    line.say(Open("a"), *(feed("a") for _ in range(WINDOW)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not script.events
    go.set()
    assert await line.end() is None
    assert script.of(Wants) == [Wants("a", 0)]


@pytest.mark.parametrize("function", [echo, sync_echo])
async def test_E114_waits_are_heard_after_the_half_close_only(function):
    """Of an input that is empty and open, whether its reader waited before or not."""
    script = Script(lambda event: [Close(None)] if type(event) is Wants else ())
    line = Line(driver_of(function), script)
    line.say(Open("a"))
    await until(lambda: line.reactor.runners["a"].invocation.inputs[0].waiters)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not script.events
    line.reactor.arrived(None)
    assert await line.end() is None
    assert script.events == [Wants("a", 0, waits=True)]


async def test_the_session_hears_of_the_end_of_each_of_several_outputs():
    """After the last message of each."""
    script = Script(lambda event: [Close(None)] if type(event) is Finished else ())
    line = Line(driver_of(two), script)
    line.say(Open("a"))
    assert await line.end() is None
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
    line = Line(driver_of(endless), script)
    line.say(Open("a"))
    await until(lambda: script.of(Emitted))
    line.say(CloseOutput("a", 0), CloseOutput("nobody", 0))
    await asyncio.wait_for(closed.wait(), 5)
    line.say(Cancel("a", Cancelled("enough")))
    await line.end()


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
    line = Line(driver_of(echo), script, fetch)
    for uri in ("good", "bad", "ugly"):
        line.say(Fetch(uri, uri, 10))
    await until(lambda: sum(one.is_last for one in script.events) == 3)
    assert steps == [("good", 10), ("bad", 10), ("ugly", 10)]
    by_key = {key: [one for one in script.of(Fetched) if one.key == key] for key in ("good", "bad", "ugly")}
    assert by_key["good"] == [Fetched("good", b"1"), Fetched("good", b"2"), Fetched("good", is_last=True)]
    assert isinstance(by_key["bad"][-1].error, LimitExceeded)
    assert isinstance(by_key["ugly"][-1].error, InternalError)
    line.say(Close(None))
    await line.end()


async def test_what_is_fetched_is_given_up_with_the_session():
    """And the end of the process waits for it."""
    given_up = asyncio.Event()

    async def fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    line = Line(driver_of(echo), Script(), fetch)
    line.say(Fetch("k", "u", 1))
    await asyncio.sleep(0)
    line.say(Close(None))
    assert await line.end() is None
    assert given_up.is_set()


async def test_a_later_timer_replaces_an_earlier_one():
    """One Elapsed, and none after the end."""
    script = Script(lambda _: [Timer(30)])
    line = Line(driver_of(echo), script)
    line.say(Timer(30), Timer(0.001))
    await until(lambda: script.events)
    assert script.events == [Elapsed()]
    line.say(Timer(0), Close(None))
    await line.end()
    await asyncio.sleep(0.002)
    assert script.events == [Elapsed()]


async def test_E110_a_peer_that_does_not_read_suspends_functions_only():
    """Frames are taken as before."""
    script = Script(lambda event: [Send(1)] if type(event) is Emitted else [Close(None)])
    line = Line(driver_of(echo), script)
    line.is_full = True
    line.say(Open("a"), feed("a"), feed("a"), EndInput("a", 0))
    await line.waits.wait()
    line.say(Open("b"), Send(2))
    assert line.got == [1, 2]
    line.is_full = False
    line.has_room.set()
    assert await line.end() is None
    assert line.got == [1, 2, 1]


async def test_E112_a_failing_action_sends_what_it_gave_before():
    """Then comes the status; other invocations are cancelled."""

    async def fails(xs: AsyncIterator[str]) -> AsyncIterator[str]:
        yield "1"
        yield "2"
        async for _ in xs:
            raise ValueError("no")

    def answer(event: Event) -> Iterable[Step]:
        return [Send(event.id)] if type(event) is Emitted else [Close(event.error)]  # type: ignore[union-attr]

    line = Line(driver_of(fails), Script(answer))
    line.say(Open("a"), Open("b"), feed("a"))
    assert isinstance(await line.end(), FunctionError)
    assert line.got.count("a") == 2


@pytest.mark.parametrize(
    ("raised", "ending"), [(LimitExceeded("x"), LimitExceeded), (RuntimeError("x"), InternalError)]
)
@pytest.mark.parametrize("where", ["receive", "deliver"])
async def test_a_session_that_raises_is_over(raised, ending, where):
    """With its own error, or with ours and no detail; its invocations are cancelled."""

    def answer(_: Event) -> Iterable[Step]:
        raise raised

    line = Line(driver_of(echo), Script(answer))
    line.say(Open("a"))
    if where == "receive":
        line.reactor.arrived(raised)
    else:
        line.say(feed("a"))
    assert isinstance(await line.end(), ending)
    assert line.reactor.arrived([Send(1)])  # what comes later is discarded
    assert line.got == []


async def test_E010_a_peer_that_is_gone_cancels_everything():
    """The session need not hear of it."""
    script = Script()
    line = Line(driver_of(echo, sync_echo), script)
    line.say(Open("a", function="echo"), Open("b", function="sync_echo"))
    line.is_gone = True
    line.reactor.gone()
    assert isinstance(await line.end(), Cancelled)
    assert not script.of(Finished)


async def test_ET93_an_idle_session_ends_when_the_process_drains():
    """One with an invocation ends after it."""
    driver = driver_of(echo)
    idle, busy = Line(driver, Script()), Line(driver, Script())
    busy.say(Open("a"))
    drained = asyncio.ensure_future(driver.drain(5))
    assert isinstance(await asyncio.wait_for(idle.closed, 5), ShuttingDown)
    assert not busy.closed.done()
    busy.say(EndInput("a", 0))
    assert isinstance(await busy.end(), ShuttingDown)
    assert await drained


async def test_ET93_a_session_that_does_not_end_is_cut():
    """At the end of the drain."""
    driver = driver_of(echo)
    line = Line(driver, Script())
    line.say(Open("a"))
    assert not await driver.drain(0.01)
    assert isinstance(await line.end(), ShuttingDown)


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
    line = Line(driver_of(quick), script)
    script.stalled.add(("a", 0))
    line.say(Open("a"), feed("a"))
    assert await line.end() is None
    assert script.of(Emitted)[0].message.payload == b"%d" % (total + 1)
