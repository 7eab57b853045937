"""Leading threads: who waits for work, and when another one does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from invoker.errors import Overloaded
from invoker.execution.bodies.pool import Threads
from invoker.execution.pace.sweeper import Sweeper
from invoker.execution.thread.leader_follower import LeaderFollower, Turn, WorkTurn

LIMIT_S = 5.0

Work = Callable[[Turn], None]


class Transport:
    """Work comes on a queue; who leads takes it from there.

    Attributes:
        served: The thread that served each work.
    """

    def __init__(self) -> None:
        self.threads = Threads(8)
        self.sweeper = Sweeper()
        self.work: SimpleQueue[Work | None] = SimpleQueue()
        self.served: list[int] = []
        self.leader_follower = LeaderFollower(self.threads, self.sweeper, self._lead)

    def _lead(self, turn: Turn) -> None:
        while turn.leads:
            work = self.work.get()
            if work is None:
                return
            self.served.append(threading.get_ident())
            work(turn)

    def do(self, work: Work = lambda _: None) -> threading.Event:
        """Give some work; the event is set once it is done."""
        done = threading.Event()

        def run(turn: Turn) -> None:
            try:
                work(turn)
            finally:
                done.set()

        self.work.put(run)
        return done

    def close(self) -> None:
        self.leader_follower.stop()
        self.work.put(None)
        self.threads.close()
        self.sweeper.close()


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport()
    made.leader_follower.start()
    yield made
    made.close()


class Sleeper:
    """Work that lasts until it is woken; it passes the lead on at the beat, as a conversation does."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    def beat(self) -> None:
        self.turn.pass_on()


def test_short_work_is_served_by_one_thread(transport):
    """It keeps the lead; the one that is started besides is ready for whoever comes."""
    for _ in range(50):
        assert transport.do().wait(LIMIT_S)
    assert len(set(transport.served)) == 1
    assert transport.threads._numbers == 2


def test_the_lead_is_passed_on_before_a_wait(transport):
    """Who passes it on finishes what it serves, and leads no more; the thread is used again."""
    asleep, wake = threading.Event(), threading.Event()

    def wait(turn: Turn) -> None:
        turn.pass_on()
        turn.pass_on()  # nothing happens
        assert not turn.leads
        asleep.set()
        assert wake.wait(LIMIT_S)

    sleeping = transport.do(wait)
    assert asleep.wait(LIMIT_S)
    assert transport.do().wait(LIMIT_S)
    assert not sleeping.is_set()
    wake.set()
    assert sleeping.wait(LIMIT_S)
    for _ in range(20):
        assert transport.do(lambda turn: turn.pass_on()).wait(LIMIT_S)
    assert transport.threads._numbers <= 4


def test_work_that_blocks_delays_other_work_by_some_beats_only(transport):
    """The sweeper notices it, although nothing else is going on."""
    wake = threading.Event()

    def block(turn: Turn) -> None:
        turn.begin(Sleeper(turn))
        assert wake.wait(LIMIT_S)
        turn.end()

    blocked = [transport.do(block) for _ in range(3)]
    assert transport.do().wait(LIMIT_S)
    assert not any(one.is_set() for one in blocked)
    wake.set()
    assert all(one.wait(LIMIT_S) for one in blocked)
    assert len(set(transport.served)) == 4


def test_without_another_thread_the_same_one_leads_on(transport, caplog, monkeypatch):
    """The system gives no more threads: work waits, and is served later."""

    def refuse(work: object) -> None:
        raise Overloaded("no thread can be started")

    monkeypatch.setattr(transport.threads, "spawn", refuse)
    assert transport.do(lambda turn: turn.pass_on()).wait(LIMIT_S)
    assert transport.do().wait(LIMIT_S)
    assert len(set(transport.served)) == 1
    assert "no other thread can wait for work" in caplog.text


def test_a_thread_that_fails_is_replaced(transport, caplog):
    """Whoever leads next serves what comes."""

    def fail(turn: Turn) -> None:
        raise ValueError("boom")

    transport.do(fail)
    assert transport.do().wait(LIMIT_S)
    assert "a thread that waits for work failed" in caplog.text


def test_nobody_is_appointed_after_the_end(transport):
    """Who comes back from its work leaves."""

    def stop(turn: Turn) -> None:
        transport.leader_follower.stop()
        turn.pass_on()

    assert transport.do(stop).wait(LIMIT_S)
    assert transport.leader_follower.leader is None
    assert transport.threads._numbers == 2  # the one that led, and one that is ready


def test_nobody_leads_before_the_start():
    """A system without threads is told at once."""
    transport = Transport()
    transport.threads.spawn = None
    with pytest.raises(TypeError):
        transport.leader_follower.start()
    assert transport.leader_follower.leader is None
    transport.close()


@pytest.fixture
def pool() -> Iterator[tuple[Threads, Sweeper]]:
    threads, sweeper = Threads(1), Sweeper()
    yield threads, sweeper
    threads.close()
    sweeper.close()


def test_work_beside_a_loop_has_a_slot_and_is_noticed_when_it_takes_long(pool):
    """Its thread never leads; the slot is free again before the result is passed on, and nothing is followed then."""
    threads, sweeper = pool
    turn, done = WorkTurn(sweeper), threading.Event()
    seen: list[object] = []

    class Long:
        beaten = threading.Event()

        def beat(self) -> None:
            turn.pass_on()
            self.beaten.set()

    def work() -> str:
        seen.append((turn.leads, threads.busy, turn in sweeper._followed))
        turn.begin(Long())
        seen.append(Long.beaten.wait(LIMIT_S))
        turn.busy = None
        return "result"

    def then(result: str) -> None:
        seen.append((result, threads.busy, turn in sweeper._followed, turn.seen))
        done.set()

    turn.start(threads, work, then)
    assert done.wait(LIMIT_S)
    assert seen == [(False, 1, True), True, ("result", 0, False, None)]


def test_R132_work_beside_a_loop_is_refused_without_a_slot_or_a_thread(pool, monkeypatch):
    """No slot stays taken."""
    threads, sweeper = pool
    never: list[object] = []
    threads.enter()
    with pytest.raises(Overloaded):
        WorkTurn(sweeper).start(threads, lambda: None, never.append)
    threads.leave()

    def refuse(_: object) -> None:
        raise Overloaded("no thread can be started")

    monkeypatch.setattr(threads, "spawn", refuse)
    with pytest.raises(Overloaded):
        WorkTurn(sweeper).start(threads, lambda: None, never.append)
    assert (threads.busy, never) == (0, [])
