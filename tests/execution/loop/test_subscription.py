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
from invoker.core.store import (
    Change,
    Create,
    Drop,
    Get,
    Hold,
    Look,
    News,
    Put,
    Question,
    Reason,
    Refused,
    Space,
    Subscriber,
)
from invoker.errors import Cancelled, InternalError
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of
from tests.execution.scripted import FakeCall, Script, echo, feed


class PlainCall(FakeCall):
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


Kind = Callable[[Driver, Script], FakeCall]


@pytest.fixture(params=[FakeCall, PlainCall])
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
    peer = kind(served(), script)
    peer.say(Ask("k", Get("s", "a")), Send("first"))
    assert await peer.end() is None
    assert peer.got == ["first", b"hi"]
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
    assert [await peer.end() for peer in (reading, writing)] == [None, None]


async def test_what_a_conversation_held_is_let_go_with_it(kind):
    """However it ends; it hears nothing afterwards, not even what was on its way."""
    driver = served()
    for end in (lambda one: one.say(Close()), lambda one: one.reactor.gone(), lambda one: one.say(Ask("", None))):
        script = Script()
        peer = kind(driver, script)
        peer.say(Ask("k", Hold("s")), Subscribe("s"))
        await until(lambda script=script: script.of(Answered))
        assert script.of(Answered)[0].value.holds == 1
        peer.reactor.arrived([Ask("late", Look("s"))])
        write(driver, "a")
        end(peer)
        await peer.end()
        write(driver, "a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [type(one) for one in script.events] == [Answered]
        assert not driver.store._claims
    driver.close()


async def test_a_slow_peer_makes_news_wait_where_they_are_joined(kind):
    """Its wire is given one that finds no room; the rest comes when there is some, as the last change of each."""

    def answer(event: Event) -> Iterable[Step]:
        return [Send(event.value.value)] if type(event) is StoreChanged else ()

    driver = served()
    script = Script(answer)
    peer = kind(driver, script)
    peer.say(Subscribe("s"))
    peer.is_full = True
    write(driver, "a", b"0")
    await peer.waits.wait()
    for number in range(5000):
        write(driver, "a", b"%d" % number)
    await asyncio.sleep(0)
    assert peer.got == [b"0"]
    peer.is_full = False
    peer.has_room.set()
    await until(lambda: peer.got[-1] == b"4999")
    assert len(peer.got) < 3000
    peer.say(Close())
    assert await peer.end() is None


async def test_a_peer_that_never_reads_is_not_waited_for(kind):
    """Its conversation ends while news wait for room."""
    driver = served()
    peer = kind(driver, Script(lambda event: [Send("x")] if type(event) is StoreChanged else ()))
    peer.is_full = True
    peer.say(Subscribe("s"))
    write(driver, "a")
    write(driver, "b")
    await peer.waits.wait()
    peer.reactor.fail(Cancelled("enough"))
    assert isinstance(await peer.end(), Cancelled)
    assert [one for one in asyncio.all_tasks() if one.get_name() == "news" and not one.cancelling()] == []


async def test_a_session_that_fails_at_an_answer_ends_its_conversation(kind):
    """With an error that tells nothing of it; others go on."""

    def answer(event: Event) -> Iterable[Step]:
        if type(event) in (Answered, Elapsed):
            raise KeyError("ours")
        return ()

    driver = served()
    for step in (Ask("k", Look("s")), Timer(0.001)):
        peer = kind(driver, Script(answer))
        peer.say(step)
        assert isinstance(await peer.end(), InternalError)
    assert isinstance(driver.store._spaces["s"].told(), Space)


async def test_what_expires_is_told_without_a_question():
    """Once the store, which does it by itself, has forgotten the space."""
    now = 0
    driver = driver_of(echo)
    driver.store = store = MemoryStore(clock=lambda: now)
    store.start(lambda _, call: asyncio.get_running_loop().call_later(0.001, call))
    script = Script()
    peer = FakeCall(driver, script)
    peer.say(Ask("k", Create("s", 10)), Subscribe("s"))
    now = 20 * 1_000_000_000
    await until(lambda: script.of(StoreChanged))
    assert script.of(StoreChanged)[0].value == Refused(Reason.EXPIRED)
    driver.close()
    peer.say(Close())
    await peer.end()


class Late:
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Subscriber, str]] = []
        self.news: list[News] = []

    def ask(self, subscriber: Subscriber, key: str, question: Question) -> None:
        self.asked.append((subscriber, key))

    def subscribe(self, subscriber: Subscriber, news: News) -> None:
        self.news.append(news)

    def leave(self, subscriber: Subscriber) -> None:
        """An answer may be under way."""

    def sweep(self) -> float | None:
        return None


async def test_a_store_may_answer_late(kind):
    """In any order, and after the conversation is over, when nobody is told."""
    driver = driver_of(echo)
    driver.store = late = Late()
    script = Script()
    peer = kind(driver, script)
    peer.say(Ask("1", Look("s")), Ask("2", Look("s")), Ask("3", Look("s")), Subscribe("s"))
    for index, value in ((1, "b"), (0, "a")):
        subscriber, key = late.asked[index]
        subscriber.answered(key, value)
    late.news[0].put(Change("a", b"x", 1))
    await until(lambda: len(script.events) == 3)
    assert script.events[:2] == [Answered("2", "b"), Answered("1", "a")]
    peer.say(Close())
    assert await peer.end() is None
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

    peer = kind(served(), script)
    peer.say(Await("a", gives), Await("b", refuses), Await("c", breaks))
    await until(lambda: len(script.of(Answered)) == 3)
    values = {one.key: one.value for one in script.of(Answered)}
    assert values["a"] == 5
    assert values["b"] is line_error
    assert isinstance(values["c"], InternalError)
    peer.say(Close())
    assert await peer.end() is None


async def test_what_is_awaited_is_cancelled_with_the_conversation(kind):
    cancelled = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    peer = kind(served(), Script())
    peer.say(Await("a", waits))
    await asyncio.sleep(0)
    peer.say(Close())
    assert await peer.end() is None
    await cancelled.wait()
