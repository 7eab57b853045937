"""What every store promises, in memory or shared by processes: spaces, items, how they end, limits, news."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from invoker.core.store import (
    ABSENT,
    PRESENT,
    Change,
    Create,
    Drop,
    Get,
    Hold,
    Item,
    Look,
    Put,
    Reason,
    Refused,
    Scan,
    Space,
)
from tests.stores.worlds import SECOND, World

Make: TypeAlias = Callable[..., World]


@pytest.fixture
def world(make_world: Make) -> World:
    """With one space that lives for ten seconds."""
    made = make_world()
    made.ask(Create("s", 10, b"about"))
    return made


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
    world.subscriber.hear()
    world.wait(9.9)
    assert isinstance(world.ask(Look("s")), Space)
    world.wait(10)
    assert world.ask(Get("s", "a")) == Refused(Reason.EXPIRED)


def test_each_use_counts_also_soon_after_another_one(world: World) -> None:
    """A store may leave out to write a use, but only for a hundredth of the time to live."""
    world.wait(0.5)
    world.ask(Look("s"))
    world.wait(9.8)
    assert isinstance(world.ask(Look("s")), Space)


def test_a_space_that_never_was_is_told_from_one_that_is_gone(world: World) -> None:
    """By the reason."""
    assert world.ask(Look("nobody")) == Refused(Reason.UNKNOWN)
    assert world.ask(Drop("nobody")) is None
    world.ask(Drop("s"))
    assert world.ask(Look("s")) == Refused(Reason.DROPPED)


def test_a_space_created_again_makes_no_other_forgotten(make_world: Callable[..., World]) -> None:
    """The reasons of as many ended spaces are kept as there may be spaces, each counted once."""
    world = make_world(spaces=2)
    for name in ["s", *"ttttt"]:
        world.ask(Create(name, 10))
        world.ask(Drop(name))
    assert world.ask(Look("s")) == world.ask(Look("t")) == Refused(Reason.DROPPED)


def test_who_holds_a_space_keeps_it(world: World) -> None:
    """Until it leaves, from when on the time to live counts; who only listens does not keep it."""
    holder, listener = world.new_subscriber(), world.new_subscriber()
    assert holder.ask(Hold("s")).holds == 1
    news = listener.hear()
    world.wait(100)
    assert world.ask(Look("s")).holds == 1
    world.wait(100)
    holder.leave()
    world.settle()
    world.wait(8.9)
    world.swept()
    assert world.taken(news) == []
    world.swept()
    assert world.taken(news) == [Refused(Reason.EXPIRED)]


def test_a_space_that_is_held_is_deleted_by_force_only(world: World) -> None:
    """Its holders may end first: the answer comes when the last one has left; the listeners are told at once."""
    holders = [world.new_subscriber(), world.new_subscriber()]
    for one in holders:
        one.ask(Hold("s"))
    news = world.subscriber.hear()
    assert world.ask(Drop("s")) == Refused(Reason.HELD, 2)
    assert world.taken(news) == []
    late = world.subscriber.later(Drop("s", is_forced=True))
    assert world.taken(news) == [Refused(Reason.DROPPED)]
    assert world.ask(Get("s", "a")) == Refused(Reason.DROPPED)
    holders[0].leave()
    world.settle()
    assert late not in world.subscriber.answers
    holders[1].leave()
    assert world.subscriber.answer(late) is None


def test_a_space_that_is_made_anew_is_empty(world: World) -> None:
    """Those who held the old one have nothing to do with it."""
    holder = world.new_subscriber()
    holder.ask(Hold("s"))
    world.ask(Put("s", "a", b"x"))
    late = world.subscriber.later(Drop("s", is_forced=True))
    world.wait(1)
    new = world.ask(Create("s", 10))
    assert (new.items, new.created_ns, new.holds) == (0, 6 * SECOND, 0)
    assert world.ask(Get("s", "a")) is None
    holder.leave()
    assert world.subscriber.answer(late) is None
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
    assert [one.updated_ns for one in items] == [5 * SECOND, 5 * SECOND + world.tick_ns, 5 * SECOND + 2 * world.tick_ns]
    assert {one.created_ns for one in items} == {5 * SECOND}


def test_a_write_may_demand_a_version(world: World) -> None:
    """Else nothing is written; so two that read and write lose nothing."""
    first = world.ask(Put("s", "a", b"1", expects=ABSENT))
    assert world.ask(Put("s", "a", b"2", expects=ABSENT)) == Refused(Reason.CHANGED)
    second = world.ask(Put("s", "a", b"2", expects=first.updated_ns))
    for wrong in (first.updated_ns, second.updated_ns + 1):
        assert world.ask(Put("s", "a", None, expects=wrong)) == Refused(Reason.CHANGED)
    assert world.ask(Get("s", "a")).value == b"2"


def test_a_write_may_demand_that_the_item_is_there(world: World) -> None:
    """In whichever version; where it is not, nothing is made."""
    assert world.ask(Put("s", "a", b"1", expects=PRESENT)) == Refused(Reason.CHANGED)
    assert world.ask(Put("s", "a", None, expects=PRESENT)) == Refused(Reason.CHANGED)
    assert world.ask(Get("s", "a")) is None
    world.ask(Put("s", "a", b"1"))
    assert world.ask(Put("s", "a", b"2", expects=PRESENT)).value == b"2"
    assert world.ask(Put("s", "a", None, expects=PRESENT)) is None
    assert world.ask(Get("s", "a")) is None


def test_an_item_keeps_what_is_said_about_it(world: World) -> None:
    """If the write says so; a new item takes what the write says."""
    new = world.ask(Put("s", "a", b"1", about=b"\0 first", keeps_about=True))
    kept = world.ask(Put("s", "a", b"2", about=b"second", keeps_about=True))
    assert (new.about, kept.about, kept.value) == (b"\0 first", b"\0 first", b"2")
    assert world.ask(Get("s", "a")) == kept
    assert world.ask(Scan("s")) == (kept,)
    written = world.ask(Put("s", "a", b"3", about=b"third"))
    assert world.ask(Get("s", "a")) == written
    assert written.about == b"third"
    assert world.ask(Put("s", "a", b"4")).about == b""


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


def test_what_is_kept_is_bounded(make_world: Make) -> None:
    """In spaces, in items and bytes of each, and in all; a refused write leaves the old value."""
    world = make_world(spaces=2, items=2, space_bytes=2000, total_bytes=3000)
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


def test_what_is_written_over_or_deleted_is_given_back(make_world: Make) -> None:
    """To the byte, with what is said about items; and all of a space that is dropped."""
    world = make_world(total_bytes=3000)
    for _ in range(20):
        before = world.ask(Create("s", 10, b"about")).size
        for value in (b"x", b"longer", b"", None):
            assert not isinstance(world.ask(Put("s", "a", value, about=bytes(300))), Refused)
        assert world.ask(Look("s")).size == before
        assert world.ask(Put("s", "b", bytes(500))).name == "b"
        world.ask(Drop("s"))


def test_a_space_that_does_not_fit_is_refused(make_world: Make) -> None:
    """Its text counts."""
    world = make_world(total_bytes=1000)
    assert world.ask(Create("s", 10, bytes(1000))) == Refused(Reason.BYTES, 0)
    assert world.ask(Create("s", 10, bytes(100))).is_new


# News


def test_a_listener_hears_what_is_there_and_then_each_change(world: World) -> None:
    """Without a gap, in order; each says whether the item is new."""
    world.ask(Put("s", "b", b"1"))
    world.ask(Put("s", "a", b"2"))
    first, later = world.subscriber.hear(has_initial=True), world.subscriber.hear()
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
    assert world.taken(first) == there + changes
    assert world.taken(later) == changes


def test_names_may_be_written_later(world: World) -> None:
    """And what nobody asked for is not told."""
    news = world.subscriber.hear("s", "a")
    world.ask(Put("s", "b", b"1"))
    world.ask(Put("s", "a", b"2"))
    assert [one.name for one in world.taken(news) if isinstance(one, Change)] == ["a"]


def test_who_leaves_hears_nothing_more(world: World) -> None:
    """And is forgotten; who listens to what is not there is told so at once."""
    other = world.new_subscriber()
    news = other.hear()
    other.leave()
    other.leave()
    world.ask(Put("s", "a", b"1"))
    assert world.taken(news) == []
    assert world.taken(other.hear("nobody")) == [Refused(Reason.UNKNOWN)]
