"""The store in memory: when it is swept, and what it accounts for.

What it promises as every store does is tested in `tests/stores/test_shared.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.spaces import MemoryStore, StoreLimits
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
    Refused,
    Scan,
)

SECOND = 1_000_000_000


class Subscriber:
    """A conversation that asks one thing after another."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.answers: dict[str, Any] = {}
        self.told: list[News] = []

    def answered(self, key: str, value: Any) -> None:
        assert key not in self.answers, "an answer comes once"
        self.answers[key] = value

    def has_news(self, news: News) -> None:
        self.told.append(news)

    def ask(self, question: Question) -> Any:
        key = f"q{len(self.answers)}"
        self.store.ask(self, key, question)
        return self.answers[key]

    def hear(self, space: str = "s", *names: str, has_initial: bool = False) -> News:
        news = News(space, names or None, self.has_news, has_initial=has_initial)
        self.store.subscribe(self, news)
        return news


class World:
    """A store whose time stands still until it is moved, and one guest."""

    def __init__(self, **limits: int) -> None:
        self.now_ns = 5 * SECOND
        self.store = MemoryStore(StoreLimits(**limits), lambda: self.now_ns)
        self.subscriber = Subscriber(self.store)

    def ask(self, question: Question) -> Any:
        return self.subscriber.ask(question)

    def wait(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)


@pytest.fixture
def world() -> World:
    """With one space that lives for ten seconds."""
    made = World()
    made.ask(Create("s", 10, b"about"))
    return made


def taken(news: News) -> list[Change | Refused]:
    return list(iter(news.take, None))


def test_T011_it_looks_each_second_while_there_is_something(world: World) -> None:
    """And not once it is closed."""
    timers: list[tuple[float, Callable[[], None]]] = []
    world.store.start(lambda delay_s, call: timers.append((delay_s, call)))
    world.ask(Create("long", 3600))
    world.ask(Create("longer", 7200))
    for seconds in (1, 10, 3600):
        ((delay_s, call),) = timers
        assert delay_s == 1
        timers.clear()
        world.wait(seconds)
        call()
    assert list(world.store._spaces) == ["longer"]
    world.ask(Drop("longer"))
    timers.pop()[1]()
    assert timers == [], "there is nothing that could expire"
    world.ask(Create("again", 10))
    world.store.close()
    timers.pop()[1]()
    assert timers == []


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("make"), st.integers(0, 4), st.integers(1, 90)),
            st.tuples(st.sampled_from(("look", "hold", "leave")), st.integers(0, 4), st.just(0)),
            st.tuples(st.just("wait"), st.integers(1, 30), st.just(0)),
        ),
        max_size=40,
    )
)
def test_T131_a_sweep_a_second_tells_each_end_in_that_second(moves: list[tuple[str, int, int]]) -> None:
    """Whenever a space was made, used, held or let go of: what sees all spaces each time and it agree."""
    world = World()
    holders: dict[str, Subscriber] = {}
    store = world.store
    for what, number, ttl_s in moves:
        name = f"s{number}"
        if what == "make":
            world.ask(Create(name, ttl_s))
        elif what == "look":
            world.ask(Look(name))
        elif what == "hold" and name not in holders:
            holders[name] = Subscriber(store)
            holders[name].ask(Hold(name))
        elif what == "leave" and name in holders:
            store.leave(holders.pop(name))
        elif what == "wait":
            for _ in range(number):
                world.wait(1)
                store.sweep()
                assert not [one for one in store._spaces.values() if not one.holds and one.expires_ns <= world.now_ns]


def test_what_is_gone_takes_nothing() -> None:
    """Neither bytes nor more names than there may be spaces."""
    world = World(spaces=3)
    for number in range(10):
        world.ask(Create(f"{number}", 10))
        world.ask(Put(f"{number}", "a", bytes(100)))
        news = world.subscriber.hear(f"{number}")
        world.ask(Drop(f"{number}"))
        assert len(taken(news)) == 1
    assert (world.store.size, len(world.store._spaces), len(world.store._gone)) == (0, 0, 3)
    world.store.leave(world.subscriber)
    assert not world.store._claims


def test_the_clock_of_a_store_is_the_time_of_day() -> None:
    """To the second; and it does not go back."""
    store = MemoryStore()
    subscriber = Subscriber(store)
    assert abs(subscriber.ask(Create("s", 1)).created_ns - time.time_ns()) < 60 * SECOND
    assert subscriber.ask(Put("s", "a", b"")).updated_ns < subscriber.ask(Put("s", "a", b"")).updated_ns


# Whatever is asked

_SPACES, _NAMES = st.sampled_from("st"), st.sampled_from(["a", "ab", "b"])
_QUESTIONS = st.one_of(
    st.builds(Create, _SPACES, st.floats(1, 20), st.binary(max_size=9)),
    st.builds(Look, _SPACES),
    st.builds(Hold, _SPACES),
    st.builds(Drop, _SPACES, st.booleans()),
    st.builds(Get, _SPACES, _NAMES),
    st.builds(Scan, _SPACES),
    st.builds(
        Put,
        _SPACES,
        _NAMES,
        st.one_of(st.none(), st.binary(max_size=300)),
        st.sampled_from([None, 0, -1]),
        st.binary(max_size=99),
        st.booleans(),
    ),
)


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(_QUESTIONS, st.floats(0, 15), st.none())), max_size=50))
def test_whatever_is_asked_what_is_kept_stays_accounted_for(said: list[tuple[int, Any]]) -> None:
    """The bytes are those of the items; names are theirs, sorted; holds are those of subscribers that are here."""
    world = World(spaces=2, items=2, space_bytes=1200, total_bytes=2000)
    subscribers = [Subscriber(world.store) for _ in range(3)]
    for turn, (number, one) in enumerate(said):
        if one is None:
            world.store.leave(subscribers[number])
        elif isinstance(one, float):
            world.wait(one)
        else:
            world.store.ask(subscribers[number], f"{turn}", one)
        store = world.store
        spaces = store._spaces.values()
        assert store.size == sum(space.size for space in spaces) <= 2000
        for space in spaces:
            assert space.names == sorted(space.items)
            assert space.size - sum(
                256 + len(name) + len(it.value) + len(it.about) for name, it in space.items.items()
            ) == (256 + len(space.name) + len(space.about))
            assert space.holds == sum(claims.holds.count(space) for claims in store._claims.values())
    for subscriber in subscribers:
        world.store.leave(subscriber)
    world.wait(100)
    world.store.sweep()
    assert (world.store.size, world.store._claims) == (0, {})
