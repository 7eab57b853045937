"""The keeper: what the store hears of host sessions, and what becomes of them when their space is gone."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from invoker.core.spaces import MemoryStore
from invoker.core.steps import Open
from invoker.core.store import Create, Drop, Look, Reason, Refused, Space
from invoker.errors import InvocationError
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, space_of
from invoker.protocols.toolbridge.service import keeper as module
from invoker.protocols.toolbridge.service.keeper import HostKeeper
from tests.execution.memory import driver_of
from tests.protocols.toolbridge.hosts import began

SECOND = 1_000_000_000


class Asker:
    """A subscriber that keeps its last answer."""

    def __init__(self) -> None:
        self.answer: Any = "none"

    def answered(self, key: str, value: Any) -> None:
        self.answer = value

    def has_news(self, news: Any) -> None:
        raise AssertionError("it subscribes to nothing")


class Cache:
    """`HostSessions`, its keeper and a store on one clock."""

    def __init__(self) -> None:
        self.now = 1000 * SECOND
        self.driver = driver_of(lambda x: x)
        self.driver.store = self.store = MemoryStore(clock=lambda: self.now)
        self.host_sessions = HostSessions(threading.Lock(), clock=lambda: self.now)
        self.keeper = self.host_sessions.keeper = HostKeeper(self.host_sessions, self.driver)

    def ask(self, question: Any, key: str = "k") -> Any:
        asker = Asker()
        self.store.ask(asker, key, question)
        return asker.answer

    def session(self, session_id: str = "s1", ttl_s: float = 60.0) -> HostSession:
        space = self.ask(Create(space_of(session_id), ttl_s))
        assert isinstance(space, Space)
        return self.host_sessions.adopt(space)


@pytest.fixture
async def kept(monkeypatch):
    monkeypatch.setattr(module, "_DELAY_S", 0.0)
    made = Cache()
    made.driver.loop = asyncio.get_running_loop()
    yield made
    made.keeper.close()
    made.driver.close()


async def turns() -> None:
    """Let what is due on the loop happen."""
    for _ in range(5):
        await asyncio.sleep(0.001)


async def test_T007_a_use_at_the_host_sessions_prolongs_the_space(kept):
    """The store hears of it, though nobody asked it about the session."""
    session = kept.session()
    kept.now += 50 * SECOND
    kept.host_sessions.end(began(kept.host_sessions, session))
    await turns()
    kept.now += 50 * SECOND
    assert isinstance(kept.ask(Look(space_of("s1"))), Space)


async def test_T010_the_space_is_held_while_something_runs(kept):
    """It does not expire, and is let go of when that has ended."""
    session = kept.session()
    running = began(kept.host_sessions, session)
    await turns()
    kept.now += 1000 * SECOND
    assert kept.ask(Look(space_of("s1"))).holds == 1
    kept.host_sessions.end(running)
    await turns()
    assert kept.ask(Look(space_of("s1"))).holds == 0
    kept.now += 60 * SECOND
    assert kept.ask(Look(space_of("s1"))) == Refused(Reason.EXPIRED)


async def test_T011_a_session_whose_space_has_expired_is_forgotten(kept):
    """As soon as the store has swept."""
    session = kept.session()
    kept.now += 61 * SECOND
    kept.store.sweep()
    await turns()
    assert kept.host_sessions.sessions == {}
    assert session.gone is Reason.EXPIRED


async def test_T070_results_are_forgotten_after_their_time(kept, monkeypatch):
    """By themselves, as long as there are any; nothing waits for those of a session that is gone."""
    session = kept.session(ttl_s=3600)
    looked: list[int] = []

    class Kept:
        def expire(self, now_ns: int) -> float | None:
            looked.append(now_ns // SECOND)
            return 0.0 if len(looked) < 3 else None

        def close(self) -> None:
            """There is nothing to give back."""

    session.results = Kept()
    kept.host_sessions.end(began(kept.host_sessions, session))
    await turns()
    assert looked == [1000] * 3
    assert kept.keeper._expiring == {}
    monkeypatch.setattr(Kept, "expire", lambda _, __: 200.0)
    kept.host_sessions.end(began(kept.host_sessions, session))
    await turns()
    (timer,) = kept.keeper._expiring.values()
    kept.ask(Drop(space_of("s1"), is_forced=True))
    await turns()
    assert kept.keeper._expiring == {}
    assert timer.cancelled()


async def test_a_store_that_cannot_be_reached_ends_no_session(kept):
    """The keeper listens and holds again, and hears of the end of the space then."""
    session = kept.session()
    running = began(kept.host_sessions, session)
    await turns()
    (news,) = kept.store._spaces[space_of("s1")].news
    news.put(Refused(Reason.UNAVAILABLE))
    await turns()
    assert kept.host_sessions.find("s1") is session
    (again,) = kept.store._spaces[space_of("s1")].news
    assert again is not news
    assert kept.ask(Look(space_of("s1"))).holds == 1
    kept.host_sessions.end(running)
    await turns()
    kept.ask(Drop(space_of("s1"), is_forced=True))
    await turns()
    assert session.gone is Reason.DROPPED


async def test_T014_what_runs_is_ended_when_the_space_is_dropped(kept):
    """Invocations are found by their operation; what is none hears it itself; the drop is answered after the last."""
    session = kept.session()
    running, other = began(kept.host_sessions, session), began(kept.host_sessions, session, is_tool=False)
    ended: list[InvocationError] = []
    other.cancel = ended.append
    invocation = kept.driver.engine.open(Open("a", configs=(running,)))
    invocation.may_be_ended(ended.append)
    kept.keeper.settle(session)
    asker = Asker()
    kept.store.ask(asker, "drop", Drop(space_of("s1"), is_forced=True))
    await turns()
    assert [one.details["code"] for one in ended] == ["cleaned", "cleaned"]
    assert asker.answer == "none"
    kept.host_sessions.end(running)
    kept.host_sessions.end(other)
    await turns()
    assert asker.answer is None


async def test_settle_lets_go_of_a_space_in_which_nothing_runs(kept):
    """So that an unforced drop is not refused because of what has ended."""
    session = kept.session()
    running = began(kept.host_sessions, session)
    await turns()
    kept.host_sessions.end(running)
    assert kept.ask(Drop(space_of("s1"))) == Refused(Reason.HELD, 1)
    kept.keeper.settle(session)
    assert kept.ask(Drop(space_of("s1"))) is None


async def test_a_thread_may_use_a_session(kept):
    """What it tells comes to the loop."""
    session = kept.session()
    await asyncio.to_thread(lambda: began(kept.host_sessions, session))
    await turns()
    assert kept.ask(Look(space_of("s1"))).holds == 1


async def test_nothing_is_left_at_the_store_when_the_process_leaves(kept):
    """Others can drop the spaces then."""
    session = kept.session()
    began(kept.host_sessions, session)
    await turns()
    kept.keeper.close()
    assert kept.ask(Drop(space_of("s1"))) is None


async def test_T011_nothing_is_left_of_a_thousand_sessions_that_nobody_cleaned_up(kept):
    """Neither at `HostSessions`, nor with the keeper, nor in the store."""
    for number in range(1000):
        session = kept.session(f"s{number}")
        kept.host_sessions.end(began(kept.host_sessions, session))
    await turns()
    kept.now += 61 * SECOND
    kept.store.sweep()
    await turns()
    assert kept.host_sessions.sessions == {}
    assert kept.keeper._posts == {}
    assert kept.store.size == 0
    assert kept.host_sessions.expired == 1000


async def test_T089_whoever_waits_for_a_place_is_woken(kept):
    """By the end of a call, in whatever thread; by the end of the session; and when the time is over."""
    session = kept.session()
    session.max_tools = 1
    running = began(kept.host_sessions, session)
    waiting = asyncio.create_task(kept.keeper.room(session, 60))
    await turns()
    assert not waiting.done()
    await asyncio.to_thread(kept.host_sessions.end, running)
    await waiting
    began(kept.host_sessions, session)
    await kept.keeper.room(session, 0.001)
    waiting = asyncio.create_task(kept.keeper.room(session, 60))
    await turns()
    kept.ask(Drop(space_of("s1"), is_forced=True))
    await waiting
    assert session.waits == 0
