"""The store in memory: spaces, their items, how they end, and what it keeps at most."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.spaces import MemoryStore, StoreLimits
from invoker.core.store import (
    ABSENT,
    Change,
    Create,
    Drop,
    Get,
    Hold,
    Item,
    Look,
    News,
    Put,
    Question,
    Reason,
    Refused,
    Scan,
    Space,
)

SECOND = 1_000_000_000


class Guest:
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
        self.guest = Guest(self.store)

    def ask(self, question: Question) -> Any:
        return self.guest.ask(question)

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


# Spaces


def test_a_space_is_made_once(world: World) -> None:
    """Who makes it again is told what it was made with, and that it is not new."""
    world.wait(1)
    again = world.ask(Create("s", 99, b"other"))
    assert (again.about, again.ttl_s, again.created_ns, again.is_new) == (b"about", 10, 5 * SECOND, False)
    assert world.ask(Create("t", 1)).is_new


def test_a_space_lives_as_long_as_it_is_used(world: World) -> None:
    """Any question about it counts, a subscription too; after its time to live without one it is gone."""
    for use in (Look("s"), Get("s", "a"), Put("s", "a", b"x"), Scan("s"), Create("s", 10)):
        world.wait(9.9)
        assert not isinstance(world.ask(use), Refused)
    world.wait(9.9)
    world.guest.hear()
    world.wait(9.9)
    assert isinstance(world.ask(Look("s")), Space)
    world.wait(10)
    assert world.ask(Get("s", "a")) == Refused(Reason.EXPIRED)


def test_a_space_that_never_was_is_told_from_one_that_is_gone(world: World) -> None:
    """By the reason."""
    assert world.ask(Look("nobody")) == Refused(Reason.UNKNOWN)
    assert world.ask(Drop("nobody")) is None
    world.ask(Drop("s"))
    assert world.ask(Look("s")) == Refused(Reason.DROPPED)


def test_who_holds_a_space_keeps_it(world: World) -> None:
    """Until it leaves, from when on the time to live counts; who only listens does not keep it."""
    holder, listener = Guest(world.store), Guest(world.store)
    assert holder.ask(Hold("s")).holds == 1
    news = listener.hear()
    world.wait(100)
    assert world.ask(Look("s")).holds == 1
    world.wait(100)
    world.store.leave(holder)
    world.wait(9.9)
    assert world.store.sweep() == 1.0
    world.wait(0.1)
    assert world.store.sweep() is None
    assert taken(news) == [Refused(Reason.EXPIRED)]


def test_the_sweep_says_when_it_is_needed_again(world: World) -> None:
    """Not before the next space can expire, within a minute, and not while there is none."""
    assert world.store.sweep() == 10
    world.ask(Create("long", 3600))
    assert world.store.sweep() == 10
    world.wait(10)
    assert world.store.sweep() == 60
    world.ask(Drop("long"))
    assert world.store.sweep() is None


def test_a_space_that_is_held_is_deleted_by_force_only(world: World) -> None:
    """Its holders may end first: the answer comes when the last one has left; the listeners are told at once."""
    holders = [Guest(world.store), Guest(world.store)]
    for one in holders:
        one.ask(Hold("s"))
    news = world.guest.hear()
    assert world.ask(Drop("s")) == Refused(Reason.HELD, 2)
    assert taken(news) == []
    world.store.ask(world.guest, "late", Drop("s", is_forced=True))
    assert taken(news) == [Refused(Reason.DROPPED)]
    assert world.ask(Get("s", "a")) == Refused(Reason.DROPPED)
    world.store.leave(holders[0])
    assert "late" not in world.guest.answers
    world.store.leave(holders[1])
    assert world.guest.answers["late"] is None


def test_a_space_that_is_made_anew_is_empty(world: World) -> None:
    """Those who held the old one have nothing to do with it."""
    holder = Guest(world.store)
    holder.ask(Hold("s"))
    world.ask(Put("s", "a", b"x"))
    world.store.ask(world.guest, "late", Drop("s", is_forced=True))
    world.wait(1)
    new = world.ask(Create("s", 10))
    assert (new.items, new.created_ns, new.holds) == (0, 6 * SECOND, 0)
    assert world.ask(Get("s", "a")) is None
    world.store.leave(holder)
    assert world.ask(Look("s")).holds == 0


# Items


def test_an_item_is_written_read_and_deleted(world: World) -> None:
    """An empty one is there."""
    assert world.ask(Get("s", "a")) is None
    written = world.ask(Put("s", "a", b""))
    assert written == Item("a", b"", 5 * SECOND, 5 * SECOND)
    assert world.ask(Get("s", "a")) == written
    assert world.ask(Put("s", "a", None)) is None
    assert world.ask(Get("s", "a")) is None
    assert world.ask(Put("s", "a", None)) is None


def test_the_version_of_an_item_grows_with_each_writing(world: World) -> None:
    """Also within one tick of the clock; when it was first written stays."""
    items = [world.ask(Put("s", "a", b"x")) for _ in range(3)]
    assert [one.updated_ns for one in items] == [5 * SECOND, 5 * SECOND + 1, 5 * SECOND + 2]
    assert {one.created_ns for one in items} == {5 * SECOND}


def test_a_write_may_demand_a_version(world: World) -> None:
    """Else nothing is written; so two that read and write lose nothing."""
    first = world.ask(Put("s", "a", b"1", expects=ABSENT))
    assert world.ask(Put("s", "a", b"2", expects=ABSENT)) == Refused(Reason.CHANGED)
    second = world.ask(Put("s", "a", b"2", expects=first.updated_ns))
    for wrong in (first.updated_ns, second.updated_ns + 1):
        assert world.ask(Put("s", "a", None, expects=wrong)) == Refused(Reason.CHANGED)
    assert world.ask(Get("s", "a")).value == b"2"


def test_items_are_read_by_prefix_sorted_in_pages(world: World) -> None:
    """A page begins behind the last name of the one before."""
    for name in ("b1", "a", "b", "c", "b2", "b3"):
        world.ask(Put("s", name, b"x"))

    def names(**asked: Any) -> list[str]:
        return [one.name for one in world.ask(Scan("s", **asked))]

    assert names() == ["a", "b", "b1", "b2", "b3", "c"]
    assert names(prefix="b") == ["b", "b1", "b2", "b3"]
    assert names(prefix="b", most=2) == ["b", "b1"]
    assert names(prefix="b", after="b1", most=2) == ["b2", "b3"]
    assert names(prefix="b", after="a") == ["b", "b1", "b2", "b3"]
    assert names(after="b3") == ["c"]
    assert names(prefix="z") == names(most=0) == names(prefix="b", after="c") == []


def test_what_is_kept_is_bounded() -> None:
    """In spaces, in items and bytes of each, and in all; a refused write leaves the old value."""
    world = World(spaces=2, items=2, space_bytes=2000, total_bytes=3000)
    assert world.ask(Create("s", 10)).is_new
    assert world.ask(Create("t", 20)).is_new
    assert world.ask(Create("u", 10)) == Refused(Reason.SPACES, 2)
    world.ask(Put("s", "a", b"old"))
    assert world.ask(Put("s", "a", bytes(2000))).reason is Reason.BYTES
    assert world.ask(Get("s", "a")).value == b"old"
    world.ask(Put("s", "b", b"x"))
    assert world.ask(Put("s", "c", b"x")) == Refused(Reason.ITEMS, 2)
    assert world.ask(Put("s", "a", bytes(1000))).name == "a"
    assert world.ask(Put("t", "a", bytes(1200))).reason is Reason.BYTES, "both together"
    world.ask(Put("s", "a", None))
    assert world.ask(Put("t", "a", bytes(1200))).name == "a"
    world.wait(10)
    assert world.ask(Create("u", 10)).is_new, "an expired space is forgotten in time"


def test_a_space_that_does_not_fit_is_refused() -> None:
    """Its text counts."""
    world = World(total_bytes=1000)
    assert world.ask(Create("s", 10, bytes(1000))) == Refused(Reason.BYTES, 0)
    assert world.ask(Create("s", 10, bytes(100))).is_new


def test_what_is_gone_takes_nothing() -> None:
    """Neither bytes nor more names than there may be spaces."""
    world = World(spaces=3)
    for number in range(10):
        world.ask(Create(f"{number}", 10))
        world.ask(Put(f"{number}", "a", bytes(100)))
        news = world.guest.hear(f"{number}")
        world.ask(Drop(f"{number}"))
        assert len(taken(news)) == 1
    assert (world.store.size, len(world.store._spaces), len(world.store._gone)) == (0, 0, 3)
    world.store.leave(world.guest)
    assert not world.store._seats


# News


def test_a_listener_hears_what_is_there_and_then_each_change(world: World) -> None:
    """Without a gap, in order; each says whether the item is new."""
    world.ask(Put("s", "b", b"1"))
    world.ask(Put("s", "a", b"2"))
    first, later = world.guest.hear(has_initial=True), world.guest.hear()
    world.wait(1)
    world.ask(Put("s", "a", b"2"))
    world.ask(Put("s", "c", b"3"))
    world.ask(Put("s", "b", None))
    changes = [
        Change("a", b"2", 6 * SECOND),
        Change("c", b"3", 6 * SECOND, is_new=True),
        Change("b", None, 6 * SECOND),
    ]
    there = [Change("a", b"2", 5 * SECOND, is_new=True), Change("b", b"1", 5 * SECOND, is_new=True)]
    assert taken(first) == there + changes
    assert taken(later) == changes


def test_names_may_be_written_later(world: World) -> None:
    """And what nobody asked for is not told."""
    news = world.guest.hear("s", "a")
    world.ask(Put("s", "b", b"1"))
    world.ask(Put("s", "a", b"2"))
    assert [one.name for one in taken(news) if isinstance(one, Change)] == ["a"]


def test_who_leaves_hears_nothing_more(world: World) -> None:
    """And is forgotten; who listens to what is not there is told so at once."""
    other = Guest(world.store)
    news = other.hear()
    world.store.leave(other)
    world.store.leave(other)
    world.ask(Put("s", "a", b"1"))
    assert taken(news) == []
    assert not world.store._spaces["s"].news
    assert taken(other.hear("nobody")) == [Refused(Reason.UNKNOWN)]
    assert not world.store._seats


def test_the_clock_of_a_store_is_the_time_of_day() -> None:
    """To the second; and it does not go back."""
    store = MemoryStore()
    guest = Guest(store)
    assert abs(guest.ask(Create("s", 1)).created_ns - time.time_ns()) < 60 * SECOND
    assert guest.ask(Put("s", "a", b"")).updated_ns < guest.ask(Put("s", "a", b"")).updated_ns


# Whatever is asked

_SPACES, _NAMES = st.sampled_from("st"), st.sampled_from(["a", "ab", "b"])
_QUESTIONS = st.one_of(
    st.builds(Create, _SPACES, st.floats(1, 20), st.binary(max_size=9)),
    st.builds(Look, _SPACES),
    st.builds(Hold, _SPACES),
    st.builds(Drop, _SPACES, st.booleans()),
    st.builds(Get, _SPACES, _NAMES),
    st.builds(Scan, _SPACES),
    st.builds(Put, _SPACES, _NAMES, st.one_of(st.none(), st.binary(max_size=300)), st.one_of(st.none(), st.just(0))),
)


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(_QUESTIONS, st.floats(0, 15), st.none())), max_size=50))
def test_whatever_is_asked_what_is_kept_stays_accounted_for(said: list[tuple[int, Any]]) -> None:
    """The bytes are those of the items; names are theirs, sorted; holds are those of guests that are here."""
    world = World(spaces=2, items=2, space_bytes=1200, total_bytes=2000)
    guests = [Guest(world.store) for _ in range(3)]
    for turn, (number, one) in enumerate(said):
        if one is None:
            world.store.leave(guests[number])
        elif isinstance(one, float):
            world.wait(one)
        else:
            world.store.ask(guests[number], f"{turn}", one)
        store = world.store
        spaces = store._spaces.values()
        assert store.size == sum(space.size for space in spaces) <= 2000
        for space in spaces:
            assert space.names == sorted(space.items)
            assert space.size - sum(256 + len(name) + len(it.value) for name, it in space.items.items()) == (
                256 + len(space.name) + len(space.about)
            )
            assert space.holds == sum(seat.holds.count(space) for seat in store._seats.values())
    for guest in guests:
        world.store.leave(guest)
    world.wait(100)
    assert world.store.sweep() is None
    assert (world.store.size, world.store._seats) == (0, {})
