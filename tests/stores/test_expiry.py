"""A space is gone within two seconds of its time, in every store, however it was used last, and though nobody asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from invoker.core.store import Change, Create, Get, Hold, Look, Put, Reason, Refused, Scan, Store
from invoker.stores.backend import LEASE_S, Sweep
from invoker.stores.shared import SharedStore
from tests.conftest import SLOW
from tests.stores.worlds import SECOND, SharedWorld, World

Make: TypeAlias = Callable[..., World]
Use: TypeAlias = Callable[[World, str], Any]


def held(world: World, name: str) -> None:
    subscriber = world.new_subscriber()
    subscriber.ask(Hold(name))
    world.settle()
    subscriber.leave()


USES: dict[str, Use] = {
    "made": lambda _, __: None,
    "made again": lambda world, name: world.ask(Create(name, 1)),
    "looked at": lambda world, name: world.ask(Look(name)),
    "read": lambda world, name: world.ask(Get(name, "a")),
    "listed": lambda world, name: world.ask(Scan(name)),
    "written": lambda world, name: world.ask(Put(name, "a", b"1")),
    "heard": lambda world, name: world.new_subscriber().hear(name),
    "held": held,
}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands are asked for at once; on a busy machine the last ones would be refused, as by a store that is gone."""
    monkeypatch.setattr("invoker.stores.asking.PATIENCE_S", 2.0 * SLOW)


@pytest.mark.timeout(20)
def test_T011_a_space_is_gone_within_two_seconds_of_its_time(make_world: Make) -> None:
    """Not before it; and so is what was made after a sweep that had found nothing to do."""
    world = make_world()
    for name in USES:
        world.ask(Create(name, 90 if name == "made" else 50))
    world.wait(40)
    for name, use in USES.items():
        use(world, name)
    world.settle()
    world.wait(47.9)
    world.swept()
    assert sorted(world.names()) == sorted(USES)
    gone(world, 1.3)
    world.ask(Create("short", 2))
    gone(world, 2)


@pytest.mark.timeout(60)
def test_T011_many_spaces_are_gone_within_two_seconds(make_world: Make) -> None:
    """More than expire at once."""
    world = make_world()
    for number in range(2500):
        world.subscriber.later(Create(f"{number}", 10))
    world.ask(Create("last", 10))
    gone(world, 11)


def test_T011_what_a_dead_process_held_is_gone_within_two_seconds_of_its_time(make_shared: Make) -> None:
    """The time to live counts from the end of its lease."""
    world = make_shared()
    world.ask(Create("s", 10))
    dead = world.another()
    world.new_subscriber(dead).ask(Hold("s"))
    stop(world, dead)
    world.settle()
    world.stores.remove(dead)
    world.now_ns += int((LEASE_S + 8.5) * SECOND)
    world.swept()
    assert world.names() == ["s"]
    gone(world, 0.6)
    world.stores.append(dead)


def test_whoever_listens_is_told_within_two_seconds(make_world: Make) -> None:
    """By whichever process forgets the space."""
    world = make_world()
    world.ask(Create("s", 10))
    news = world.subscriber.hear("s")
    world.settle()
    world.wait(10)
    gone(world, 0)
    world.until(lambda: news in world.subscriber.told)
    assert list[Change | Refused](iter(news.take, None)) == [Refused(Reason.EXPIRED)]


@pytest.mark.timeout(60)
def test_T011_a_thousand_spaces_expire_at_once_and_then_there_are_more(make_shared: Make) -> None:
    """The storage is locked for others meanwhile."""
    world = make_shared()
    for number in range(2200):
        world.subscriber.later(Create(f"{number}", 10))
    world.ask(Create("last", 10))
    stop(world, world.store)
    world.now_ns += 11 * SECOND
    left = []
    for is_more in (True, True, False):
        assert isinstance(world, SharedWorld)
        assert world.asked(Sweep(), world.store) == [is_more]
        left.append(len(world.names()))
    assert left == [1201, 201, 0]


def stop(world: World, store: Store) -> None:
    """Let its process do nothing by itself any more, and end what it does."""
    assert isinstance(store, SharedStore)
    asking = store.asking
    asking._regular = list  # type: ignore[method-assign]
    world.new_subscriber(store).ask(Look("nothing"))
    asking._due.update(dict.fromkeys(asking._due, time.monotonic() + 1000))


def gone(world: World, after_s: float) -> None:
    """Let time pass, and no more than two seconds until nothing is left."""
    began = time.monotonic()
    world.now_ns += int(after_s * SECOND)
    due_ns = world.now_ns
    world.until(lambda: not world.names())
    assert time.monotonic() - began < 2 * SLOW
    assert world.now_ns - due_ns <= 2 * SECOND
