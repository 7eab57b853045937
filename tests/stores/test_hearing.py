"""`SharedStore`, with answers and events of the backend in an order that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from invoker.core.store import Change, Create, Drop, Get, Hold, Item, Look, News, Put, Reason, Refused, Scan
from invoker.stores.backend import Asked, Deafen, Event, Listen, Listening
from invoker.stores.shared import SharedStore


class Stub:
    """A backend, and the thread that asks it: what is asked waits until a test answers it."""

    epoch = 1

    def __init__(self) -> None:
        self.asked: list[tuple[Asked, Callable[[Any], None] | None]] = []
        self.waited_for: list[Asked] = []

    def put(self, asked: Asked, answer: Callable[[Any], None] | None = None, *, is_waited_for: bool = False) -> None:
        self.asked.append((asked, answer))
        self.waited_for += [asked] * is_waited_for

    def answer(self, said: Any) -> None:
        """Answer the oldest `Listen`."""
        index = next(number for number, (one, _) in enumerate(self.asked) if isinstance(one, Listen))
        _, answer = self.asked.pop(index)
        assert answer is not None
        answer(said)

    def deafened(self) -> list[int]:
        return [one.key for one, _ in self.asked if isinstance(one, Deafen)]


class Subscriber:
    def answered(self, key: str, value: Any) -> None:
        """It asks nothing."""

    def has_news(self, news: News) -> None:
        """They are taken."""


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def store(stub: Stub) -> SharedStore:
    made = SharedStore(stub)  # type: ignore[arg-type]
    made.asking = stub  # type: ignore[assignment]
    return made


def hear(store: SharedStore, subscriber: Subscriber) -> News:
    news = News("s", None, subscriber.has_news, has_initial=True)
    store.subscribe(subscriber, news)
    return news


def events(*numbers: int) -> list[Event]:
    return [Event(7, number, Change("a", b"%d" % number, number)) for number in numbers]


def told(news: News) -> list[Any]:
    return [one.value if isinstance(one, Change) else one for one in iter(news.take, None)]


def test_changes_that_the_items_contain_are_not_told_again(store: SharedStore, stub: Stub) -> None:
    """Neither to one that listens already: each has a number of its own to begin with."""
    first, second = hear(store, Subscriber()), hear(store, Subscriber())
    stub.answer(Listening(7, 3, (), 1))
    stub.answer(Listening(7, 5, (Item("a", b"5", 1, 5),), 1))
    store._hear(events(4, 5, 6))
    assert told(first) == [b"4", b"5", b"6"]
    assert told(second) == [b"5", b"6"]


def test_changes_that_come_before_the_answer_are_not_lost(store: SharedStore, stub: Stub) -> None:
    """The end of the space neither; what is kept for that is forgotten when nobody waits."""
    subscriber = Subscriber()
    news = hear(store, subscriber)
    store._hear([*events(5, 6), Event(8, 9, Change("b", b"other", 1))])
    store._hear([Event(7, 7, Refused(Reason.DROPPED))])
    stub.answer(Listening(7, 5, (Item("a", b"5", 1, 5),), 1))
    assert told(news) == [b"5", b"6", Refused(Reason.DROPPED)]
    assert store._early == []


def test_who_leaves_deafens_nobody_who_is_about_to_listen(store: SharedStore, stub: Stub) -> None:
    """The backend is told when the last one has left and none waits."""
    one, two = Subscriber(), Subscriber()
    hear(store, one)
    stub.answer(Listening(7, 1, (), 1))
    news = hear(store, two)
    store.leave(one)
    assert stub.deafened() == []
    stub.answer(Listening(7, 1, (), 1))
    assert stub.deafened() == []
    store._hear(events(2))
    assert told(news) == [b"2"]
    store.leave(two)
    assert stub.deafened() == [7]
    assert store._subscriptions == {}


def test_an_answer_of_an_earlier_epoch_is_worth_nothing(store: SharedStore, stub: Stub) -> None:
    """Changes may have been missed since."""
    news = hear(store, Subscriber())
    stub.epoch = 2
    stub.answer(Listening(7, 1, (), 1))
    assert told(news) == [Refused(Reason.UNAVAILABLE)]
    assert stub.deafened() == [7]


def test_who_left_before_the_answer_hears_nothing(store: SharedStore, stub: Stub) -> None:
    """And the backend need not tell."""
    subscriber = Subscriber()
    news = hear(store, subscriber)
    store.leave(subscriber)
    stub.answer(Listening(7, 1, (Item("a", b"1", 1, 1),), 1))
    assert told(news) == []
    assert stub.deafened() == [7]


def test_all_subscriptions_end_when_changes_may_be_missed(store: SharedStore, stub: Stub) -> None:
    """Once."""
    news = hear(store, Subscriber())
    stub.answer(Listening(7, 1, (), 1))
    store._lose()
    store._lose()
    store._hear(events(2))
    assert told(news) == [Refused(Reason.UNAVAILABLE)]


def test_who_waits_is_told_soon_and_what_must_be_done_has_its_time(store: SharedStore, stub: Stub) -> None:
    """A hold has to be released, and what shall be durable may take long; all else is asked by somebody who waits."""
    soon = [Create("s", 1), Look("s"), Get("s", "a"), Scan("s"), Put("s", "a", b"x"), Drop("s")]
    patient = [Hold("s"), Put("s", "a", b"x", is_durable=True)]
    for one in (*soon, *patient):
        store.ask(Subscriber(), "k", one)
    store.subscribe(Subscriber(), News("s", (), lambda _: None))
    assert stub.waited_for[:-1] == soon
    assert isinstance(stub.waited_for[-1], Listen)
