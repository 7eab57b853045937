"""Several processes on one store: what one does the others see, and what a dead one leaves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invoker.core.store import Change, Create, Drop, Get, Hold, Item, Look, News, Put, Reason, Refused, Scan
from invoker.stores.backend import LEASE_S
from tests.stores.worlds import SECOND, MemoryWorld, SharedWorld

Make: TypeAlias = Callable[..., SharedWorld]


@pytest.fixture
def world(make_shared: Make) -> SharedWorld:
    """With one space that lives for ten seconds."""
    made = make_shared()
    made.ask(Create("s", 10, b"about"))
    return made


def test_another_process_sees_what_one_wrote(world: SharedWorld) -> None:
    """Spaces, items and versions; a version that one has read holds in the other."""
    other = world.new_subscriber(world.another())
    assert not other.ask(Create("s", 99)).is_new
    written = world.ask(Put("s", "a", b"1"))
    assert other.ask(Get("s", "a")) == written
    assert other.ask(Put("s", "a", b"2", expects=written.updated_ns)).value == b"2"
    assert world.ask(Put("s", "a", b"3", expects=written.updated_ns)) == Refused(Reason.CHANGED)
    assert [one.value for one in world.ask(Scan("s"))] == [b"2"]


def test_another_process_hears_what_one_writes(world: SharedWorld) -> None:
    """In order, whoever of them wrote, and the end, too; who listens to the end only hears no items."""
    store = world.another()
    other = world.new_subscriber(store)
    world.ask(Put("s", "a", b"0"))
    items, here = other.hear(has_initial=True), world.subscriber.hear()
    named, none = world.new_subscriber(store).hear("s", "b"), world.new_subscriber(store).hear("s", "nothing")
    world.settle()
    for number in range(20):
        (world.subscriber if number % 2 else other).ask(Put("s", "ab"[number // 10], b"%d" % number))
    world.ask(Drop("s"))
    numbers = [b"%d" % number for number in range(20)]
    *changes, end = world.taken(items)
    assert [one.value for one in changes if isinstance(one, Change)] == [b"0", *numbers]
    assert [one.is_new for one in changes if isinstance(one, Change)] == [True, *[False] * 10, True, *[False] * 9]
    assert end == Refused(Reason.DROPPED)
    assert [one.value for one in world.taken(here) if isinstance(one, Change)] == numbers
    assert [one.value for one in world.taken(named) if isinstance(one, Change)] == numbers[10:]
    assert world.taken(none) == [Refused(Reason.DROPPED)]


def test_who_listens_to_the_end_only_keeps_nobody_from_items(world: SharedWorld) -> None:
    """Whoever of one process came first."""
    other, store = world.new_subscriber(), world.another()
    subscribers = [world.new_subscriber(store) for _ in range(3)]
    ends = [News("s", (), subscribers[0].has_news), News("s", (), subscribers[2].has_news)]
    store.subscribe(subscribers[0], ends[0])
    items = subscribers[1].hear()
    store.subscribe(subscribers[2], ends[1])
    world.settle()
    other.ask(Put("s", "a", b"1"))
    assert [one.value for one in world.taken(items) if isinstance(one, Change)] == [b"1"]
    assert [world.taken(one) for one in ends] == [[], []]


def test_who_begins_to_listen_while_others_write_misses_nothing(world: SharedWorld) -> None:
    """What is there and what follows are the writes, each once and in order (T-127)."""
    other = world.new_subscriber(world.another())
    keys = [other.later(Put("s", "a", b"%d" % number)) for number in range(200)]
    heard = [world.new_subscriber().hear(has_initial=True)]
    for count in (50, 100, 199):
        other.answer(keys[count])
        heard.append(world.new_subscriber().hear(has_initial=True))
    for news in heard:
        values = [int(one.value or b"") for one in world.taken(news) if isinstance(one, Change)]
        assert values == list(range(values[0] if values else 200, 200)), "no gap and nothing twice"


def test_who_leaves_one_of_two_subscriptions_leaves_the_other(world: SharedWorld) -> None:
    """The process goes on to hear as long as somebody in it does."""
    first, second = world.new_subscriber(), world.new_subscriber()
    one, two = first.hear(), second.hear()
    world.settle()
    first.leave()
    world.ask(Put("s", "a", b"1"))
    assert [change.value for change in world.taken(two) if isinstance(change, Change)] == [b"1"]
    assert world.taken(one) == []
    second.leave()
    third = world.new_subscriber().hear()
    world.ask(Put("s", "a", b"2"))
    assert [change.value for change in world.taken(third) if isinstance(change, Change)] == [b"2"]


def test_a_space_held_elsewhere_is_deleted_by_force_only(world: SharedWorld) -> None:
    """The answer comes when the holder in the other process has left."""
    holder = world.new_subscriber(world.another())
    holder.ask(Hold("s"))
    news = holder.hear()
    world.settle()
    assert world.ask(Drop("s")) == Refused(Reason.HELD, 1)
    late = world.subscriber.later(Drop("s", is_forced=True))
    assert world.taken(news) == [Refused(Reason.DROPPED)]
    assert late not in world.subscriber.answers
    holder.leave()
    assert world.subscriber.answer(late) is None


def test_what_a_dead_process_held_lapses(world: SharedWorld) -> None:
    """After its lease; the time to live counts from then."""
    dead = world.new_subscriber(world.another())
    dead.ask(Hold("s"))
    world.beat()
    alive, world.stores = world.stores[0], world.stores[:1]
    try:
        world.wait(LEASE_S - 1)
        assert world.ask(Drop("s")) == Refused(Reason.HELD, 1)
        world.now_ns += 2 * SECOND
        world.beat(alive)
        assert world.ask(Look("s")).holds == 0
        world.wait(9.5)
        assert world.ask(Look("s")).holds == 0
        world.wait(10)
        assert world.ask(Look("s")) == Refused(Reason.EXPIRED)
    finally:
        world.stores.append(dead.store)


def test_a_dead_process_keeps_no_deletion_waiting(world: SharedWorld) -> None:
    """Who deleted by force is answered when the lease is over."""
    dead = world.new_subscriber(world.another())
    dead.ask(Hold("s"))
    late = world.subscriber.later(Drop("s", is_forced=True))
    world.settle()
    assert late not in world.subscriber.answers
    world.now_ns += int((LEASE_S + 1) * SECOND)
    world.beat(world.store)
    assert world.subscriber.answer(late) is None


def test_who_left_before_the_answer_holds_nothing(world: SharedWorld) -> None:
    """A conversation may end while its question is under way."""
    subscriber = world.new_subscriber()
    subscriber.later(Hold("s"))
    news = subscriber.hear()
    subscriber.leave()
    world.settle()
    assert world.ask(Look("s")).holds == 0
    world.ask(Put("s", "a", b"1"))
    assert world.taken(news) == []


def test_values_of_any_bytes_and_names_of_any_letters_pass(world: SharedWorld) -> None:
    """A value may have blanks, zeros and what is no text; a name what is text."""
    names = ["", "a b", "ü", "\U0001f600", "%d", "x" * 256]
    news = world.subscriber.hear(has_initial=True)
    world.settle()
    value = bytes(range(256)) * 3
    for name in names:
        assert world.ask(Put("s", name, value)) == world.ask(Get("s", name)) == Item(name, value, *[5 * SECOND] * 2)
    assert [one.name for one in world.ask(Scan("s"))] == sorted(names)
    assert [(one.name, one.value) for one in world.taken(news) if isinstance(one, Change)] == [
        (name, value) for name in names
    ]


_TURNS = itertools.count(1000)
_SPACES, _NAMES = st.sampled_from("st"), st.sampled_from(["a", "ab", "b"])
_QUESTIONS = st.one_of(
    st.builds(Create, _SPACES, st.integers(1, 20).map(float), st.binary(max_size=9)),
    st.builds(Look, _SPACES),
    st.builds(Hold, _SPACES),
    st.builds(Drop, _SPACES),
    st.builds(Get, _SPACES, _NAMES),
    st.builds(Scan, _SPACES, _NAMES),
    st.builds(
        Put,
        _SPACES,
        _NAMES,
        st.one_of(st.none(), st.binary(max_size=300)),
        st.sampled_from([None, 0, -1]),
        st.binary(max_size=60),
        st.booleans(),
    ),
)
_ASKED = st.tuples(st.integers(0, 2), st.one_of(_QUESTIONS, st.integers(1, 15), st.none()))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(said=st.lists(_ASKED, max_size=30))
@pytest.mark.timeout(30)
def test_every_store_gives_the_answers_of_memory(make_shared: Make, said: list[tuple[int, Any]]) -> None:
    """Whatever is asked, in whichever order, by whoever; in two processes as in one."""
    limits = {"spaces": 2, "items": 2, "space_bytes": 1200, "total_bytes": 2000}
    memory, shared = MemoryWorld(**limits), make_shared(**limits)
    second = shared.another()
    ours = [memory.new_subscriber() for _ in range(3)]
    theirs = [shared.new_subscriber(store) for store in (shared.store, second, second)]
    turn = next(_TURNS)  # spaces of other turns are gone, which memory does not know
    try:
        for number, one in said:
            if one is None:
                ours[number].leave()
                theirs[number].leave()
                shared.beat()
            elif isinstance(one, int):
                memory.wait(one)
                shared.wait(one)
            else:
                asked = msgspec.structs.replace(one, space=f"{one.space}{turn}")
                expected, got = ours[number].ask(asked), theirs[number].ask(asked)
                assert _plain(got) == _plain(expected), asked
    finally:
        for subscriber in theirs:
            subscriber.leave()
        shared.wait(1000)
        shared.swept()
        shared.close()  # its time differs from that of the next world, whose spaces it would let expire
        memory.close()


def _plain(answer: Any) -> Any:
    """An answer without what the stores measure differently."""
    if isinstance(answer, Item):
        return answer.name, answer.value, answer.about
    if isinstance(answer, tuple):
        return [_plain(one) for one in answer]
    return answer
