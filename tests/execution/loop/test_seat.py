"""Conversations that ask the store, and hear what others write there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from invoker.core.spaces import MemoryStore
from invoker.core.steps import (
    Answered,
    Ask,
    Await,
    Close,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Finished,
    Open,
    Send,
    Step,
    StoreChanged,
    Subscribe,
    Terms,
    Timer,
)
from invoker.core.store import Change, Create, Drop, Get, Guest, Hold, Look, News, Put, Question, Reason, Refused, Space
from invoker.errors import Cancelled, InternalError
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from tests.execution.looplines import until
from tests.execution.memory import driver_of
from tests.execution.scripted import Line, Script, echo, feed


class PlainLine(Line):
    """The same wire with a reactor for one invocation, whose session keeps nothing."""

    def __init__(self, driver: Driver, script: Script) -> None:
        super().__init__(driver, script)
        self.reactor.gone()
        self.closed = asyncio.get_running_loop().create_future()
        self.reactor = Reactor(script, self, driver, self.closed.set_result)
        script.released = 0

    async def end(self) -> Any:
        self.script.released = 1
        return await super().end()


Kind = Callable[[Driver, Script], Line]


@pytest.fixture(params=[Line, PlainLine])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


def served(*functions: Any) -> Driver:
    """A driver whose store has the space ``s``."""
    driver = driver_of(*(functions or (echo,)))
    driver.store.ask(_Nobody(), "", Create("s", 3600))
    return driver


class _Nobody:
    def answered(self, key: str, value: Any) -> None:
        """Nobody reads it."""

    def has_news(self, news: News) -> None:
        """Nobody reads them."""


def write(driver: Driver, name: str, value: bytes | None = b"x") -> None:
    """Another conversation writes."""
    driver.store.ask(_Nobody(), "", Put("s", name, value))


async def test_an_answer_comes_in_a_later_turn_and_may_open_an_invocation(kind):
    """Though the store answers at once: the session is not called from within its own step."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) is Answered:
            script.during.append(script.is_receiving)
            return [Open("a", terms=Terms.LOOSE), feed("a", b"hi"), EndInput("a")]
        if type(event) is Emitted:
            return [Send(event.message.payload)]
        return [Close()] if type(event) is Finished else ()

    class Watched(Script):
        is_receiving = False

        def receive(self, frame: Any) -> Iterable[Step]:
            self.is_receiving = True
            yield from frame
            self.is_receiving = False

    script = Watched(answer)
    script.during = []
    line = kind(served(), script)
    line.say(Ask("k", Get("s", "a")), Send("first"))
    assert await line.end() is None
    assert line.got == ["first", b"hi"]
    assert script.of(Answered) == [Answered("k", None)]
    assert script.during == [False]


async def test_what_one_conversation_writes_others_read_and_hear(kind):
    """Each change once, in order, with what is there already; the space's end is the last news."""
    driver = served()
    write(driver, "before")
    reader, writer = Script(), Script()
    reading, writing = kind(driver, reader), kind(driver, writer)
    reading.say(Subscribe("s", has_initial=True))
    writing.say(Ask("1", Put("s", "a", b"1")), Ask("2", Put("s", "a", b"2")), Ask("3", Drop("s")))
    await until(lambda: len(reader.of(StoreChanged)) == 4)
    changes = [one.value for one in reader.of(StoreChanged)]
    assert [(one.name, one.value, one.is_new) for one in changes[:3]] == [
        ("before", b"x", True),
        ("a", b"1", True),
        ("a", b"2", False),
    ]
    assert changes[3] == Refused(Reason.DROPPED)
    assert [one.key for one in writer.of(Answered)] == ["1", "2", "3"]
    reading.say(Close())
    writing.say(Close())
    assert [await line.end() for line in (reading, writing)] == [None, None]


async def test_what_a_conversation_held_is_let_go_with_it(kind):
    """However it ends; it hears nothing afterwards, not even what was on its way."""
    driver = served()
    for end in (lambda one: one.say(Close()), lambda one: one.reactor.gone(), lambda one: one.say(Ask("", None))):
        script = Script()
        line = kind(driver, script)
        line.say(Ask("k", Hold("s")), Subscribe("s"))
        await until(lambda script=script: script.of(Answered))
        assert script.of(Answered)[0].value.holds == 1
        line.reactor.arrived([Ask("late", Look("s"))])
        write(driver, "a")
        end(line)
        await line.end()
        write(driver, "a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [type(one) for one in script.events] == [Answered]
        assert not driver.store._seats
    driver.close()


async def test_a_slow_peer_makes_news_wait_where_they_are_joined(kind):
    """Its wire is given one that finds no room; the rest comes when there is some, as the last change of each."""

    def answer(event: Event) -> Iterable[Step]:
        return [Send(event.value.value)] if type(event) is StoreChanged else ()

    driver = served()
    script = Script(answer)
    line = kind(driver, script)
    line.say(Subscribe("s"))
    line.is_full = True
    write(driver, "a", b"0")
    await line.waits.wait()
    for number in range(5000):
        write(driver, "a", b"%d" % number)
    await asyncio.sleep(0)
    assert line.got == [b"0"]
    line.is_full = False
    line.has_room.set()
    await until(lambda: line.got[-1] == b"4999")
    assert len(line.got) < 3000
    line.say(Close())
    assert await line.end() is None


async def test_a_peer_that_never_reads_is_not_waited_for(kind):
    """Its conversation ends while news wait for room."""
    driver = served()
    line = kind(driver, Script(lambda event: [Send("x")] if type(event) is StoreChanged else ()))
    line.is_full = True
    line.say(Subscribe("s"))
    write(driver, "a")
    write(driver, "b")
    await line.waits.wait()
    line.reactor.fail(Cancelled("enough"))
    assert isinstance(await line.end(), Cancelled)
    assert [one for one in asyncio.all_tasks() if one.get_name() == "news" and not one.cancelling()] == []


async def test_a_session_that_fails_at_an_answer_ends_its_conversation(kind):
    """With an error that tells nothing of it; others go on."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) in (Answered, Elapsed):
            raise KeyError("ours")
        return ()

    driver = served()
    for step in (Ask("k", Look("s")), Timer(0.001)):
        line = kind(driver, Script(answer))
        line.say(step)
        assert isinstance(await line.end(), InternalError)
    assert isinstance(driver.store._spaces["s"].told(), Space)


async def test_what_expires_is_told_without_a_question():
    """The driver sweeps the store as long as there is something in it, and no longer than it lives itself."""
    now = 0
    store = MemoryStore(clock=lambda: now)
    driver = driver_of(echo)
    driver.store = store
    swept: list[float | None] = []
    sweep = store.sweep
    store.sweep = lambda: swept.append(sweep()) or (None if swept[-1] is None else 0.001)
    script = Script()
    line = Line(driver, script)
    line.say(Ask("k", Create("s", 10)), Subscribe("s"))
    assert swept == [1.0]
    now = 20 * 1_000_000_000
    await until(lambda: script.of(StoreChanged))
    assert script.of(StoreChanged)[0].value == Refused(Reason.EXPIRED)
    await until(lambda: swept[-1] is None)
    assert driver._sweeping is None
    line.say(Ask("k", Create("s", 10)))
    assert driver._sweeping is not None
    driver.close()
    assert driver._sweeping.cancelled()
    line.say(Close())
    await line.end()


class Late:
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Guest, str]] = []
        self.news: list[News] = []

    def ask(self, guest: Guest, key: str, question: Question) -> None:
        self.asked.append((guest, key))

    def subscribe(self, guest: Guest, news: News) -> None:
        self.news.append(news)

    def leave(self, guest: Guest) -> None:
        """An answer may be under way."""

    def sweep(self) -> float | None:
        return None


async def test_a_store_may_answer_late(kind):
    """In any order, and after the conversation is over, when nobody is told."""
    driver = driver_of(echo)
    driver.store = late = Late()
    script = Script()
    line = kind(driver, script)
    line.say(Ask("1", Look("s")), Ask("2", Look("s")), Ask("3", Look("s")), Subscribe("s"))
    for index, value in ((1, "b"), (0, "a")):
        guest, key = late.asked[index]
        guest.answered(key, value)
    late.news[0].put(Change("a", b"x", 1))
    await until(lambda: len(script.events) == 3)
    assert script.events[:2] == [Answered("2", "b"), Answered("1", "a")]
    line.say(Close())
    assert await line.end() is None
    late.asked[2][0].answered("3", "c")
    late.news[0].put(Change("a", b"y", 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(script.events) == 3


async def test_what_is_awaited_is_answered_with_its_result_or_its_error(kind):
    """What is no error of an invocation becomes InternalError, so that a session never hangs."""
    script, line_error = Script(), Cancelled("no")

    async def gives() -> int:
        return 5

    async def refuses() -> int:
        raise line_error

    async def breaks() -> int:
        raise KeyError("secret")

    line = kind(served(), script)
    line.say(Await("a", gives), Await("b", refuses), Await("c", breaks))
    await until(lambda: len(script.of(Answered)) == 3)
    values = {one.key: one.value for one in script.of(Answered)}
    assert values["a"] == 5
    assert values["b"] is line_error
    assert isinstance(values["c"], InternalError)
    line.say(Close())
    assert await line.end() is None


async def test_what_is_awaited_is_cancelled_with_the_conversation(kind):
    cancelled = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    line = kind(served(), Script())
    line.say(Await("a", waits))
    await asyncio.sleep(0)
    line.say(Close())
    assert await line.end() is None
    await cancelled.wait()
