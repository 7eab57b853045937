"""Turns at the gate."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from invoker.execution.pace.gate import UNGATED, Gate, Pace, Ticket


class Guests:
    """Threads that wait at a gate, each of which is known to wait before the next one comes."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self.gate = Gate(self.came.release)
        self.order: list[int] = []
        self.threads: list[threading.Thread] = []

    def enter(self, ticket: Ticket) -> None:
        """Enter in this thread; the gate must be free."""
        self.gate.enter(ticket)
        assert self.came.acquire(blocking=False)

    def add(self, number: int, ticket: Ticket | None = None) -> None:
        """Send one to the gate; it has to wait."""
        ticket = ticket or Ticket()

        def visit() -> None:
            self.gate.enter(ticket)
            self.order.append(number)
            self.gate.leave(ticket)

        self.threads.append(threading.Thread(target=visit, daemon=True))
        self.threads[-1].start()
        assert self.came.acquire(timeout=5)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(5)
            assert not thread.is_alive()


def test_turns_come_in_order_of_arrival():
    """First come, first served."""
    guests, me = Guests(), Ticket()
    guests.enter(me)
    for number in range(8):
        guests.add(number)
    assert guests.gate.is_waited_for
    assert guests.order == []
    guests.gate.leave(me)
    guests.join()
    assert guests.order == list(range(8))
    assert not guests.gate.is_waited_for


def test_a_free_gate_lets_in_at_once_and_twice():
    """Who has a turn keeps it, and a turn that has ended leaves nothing behind."""
    gate, me, other = Gate(lambda: None), Ticket(), Ticket()
    gate.enter(me)
    gate.enter(me)
    gate.leave(me)
    gate.enter(other)
    assert gate.beat()
    gate.leave(other)
    assert not gate.beat()


def test_a_long_turn_ends_by_beat():
    """After two beats everybody who waits is let in; the late end of the turn takes nothing away from anybody."""
    guests, me = Guests(), Ticket()
    guests.enter(me)
    for number in range(3):
        guests.add(number)
    assert guests.gate.beat()
    assert guests.gate.beat()
    assert guests.order == []
    assert not guests.gate.beat()
    guests.join()
    assert sorted(guests.order) == [0, 1, 2]
    guest = Ticket()
    guests.enter(guest)
    guests.add(3)
    guests.gate.leave(me)
    assert guests.order[3:] == []
    guests.gate.leave(guest)
    guests.join()
    assert guests.order[3:] == [3]


def test_a_function_that_blocks_passes_by_for_a_while(monkeypatch):
    """All tickets of its pace do, for a second; then it takes turns again."""
    now_s = [100.0]
    monkeypatch.setattr("invoker.execution.pace.gate.time", SimpleNamespace(monotonic=lambda: now_s[0]))
    pace, guests, other = Pace(), Guests(), Ticket()
    guests.enter(Ticket(pace))
    guests.gate.beat()
    guests.gate.beat()
    assert not guests.gate.beat()
    guests.enter(other)
    guests.gate.enter(Ticket(pace))  # does not wait although another one has its turn
    assert guests.gate.beat()
    now_s[0] += 2.0
    guests.add(1, Ticket(pace))
    guests.gate.leave(other)
    guests.join()


def test_a_long_turn_in_which_something_moves_does_not_end():
    """Work that gets less is work that is done, however long the turn takes."""
    work = [1] * 9
    guests, me = Guests(), Ticket(work=work)
    guests.enter(me)
    guests.add(1)
    for _ in range(8):
        work.pop()
        assert guests.gate.beat()
    assert guests.order == []
    assert me.pace.slow_until == 0
    guests.gate.leave(me)
    guests.join()


def test_a_crowd_begins_beyond_eight():
    """Those who have joined count, and those who have parted do not."""
    gate = Gate(lambda: None)
    for _ in range(8):
        gate.join()
    assert not gate.is_crowded
    gate.join()
    assert gate.is_crowded
    gate.part()
    assert not gate.is_crowded


def test_a_thread_without_a_gate_never_waits():
    """Nor does it keep anybody from their turn."""
    guests = Guests()
    guests.gate.enter(Ticket(UNGATED))
    guests.gate.enter(Ticket(UNGATED))
    assert not guests.gate.beat()
    me = Ticket()
    guests.enter(me)
    guests.gate.enter(Ticket(UNGATED))
    guests.gate.leave(me)


def test_short_turns_outlive_beats():
    """Another turn of the same thread is another turn, so a beat between them ends neither."""
    guests, me = Guests(), Ticket()
    for _ in range(5):
        guests.enter(me)
        assert guests.gate.beat()
        guests.gate.leave(me)
    guests.enter(me)
    guests.add(1)
    assert guests.gate.beat()
    assert guests.order == []
    guests.gate.leave(me)
    guests.join()
    assert me.pace.slow_until == 0


def test_a_turn_that_a_beat_ends_meanwhile_is_not_passed_on() -> None:
    """Whoever has the next one keeps it."""
    gate, me, other = Gate(lambda: None), Ticket(), Ticket()
    gate.enter(me)

    class Beaten:
        def __enter__(self) -> None:
            gate._owner = other

        def __exit__(self, *_: object) -> None:
            pass

    gate._lock = Beaten()  # type: ignore[assignment]
    gate.leave(me)
    assert gate._owner is other


def test_leaving_without_a_turn_is_harmless():
    """Neither at a free gate nor in the turn of another one."""
    guests, me, stranger = Guests(), Ticket(), Ticket()
    guests.gate.leave(stranger)
    guests.enter(me)
    guests.add(1)
    guests.gate.leave(stranger)
    assert guests.order == []
    assert guests.gate.is_waited_for
    guests.gate.leave(me)
    guests.join()


@pytest.fixture
def _eager_switches() -> Iterator[None]:
    """Threads take the interpreter from each other at nearly every step."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("_eager_switches")
def test_no_wake_up_is_lost(monkeypatch):
    """16 threads with 2,000 turns each, ended by themselves and by beats, all come to their end."""
    monkeypatch.setattr("invoker.execution.pace.gate._SLOW_S", 0.0)  # nobody passes by
    gate, done, until = Gate(lambda: None), [], time.monotonic() + 20

    def visit() -> None:
        ticket = Ticket()
        for _ in range(2000):
            gate.enter(ticket)
            gate.leave(ticket)
        done.append(ticket)

    threads = [threading.Thread(target=visit, daemon=True) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and time.monotonic() < until:
            gate.beat()
            thread.join(0.001)
    assert len(done) == 16
    assert not gate.is_waited_for
    gate.beat()
    assert not gate.beat()


@pytest.mark.usefixtures("_eager_switches")
def test_turns_do_not_overlap_without_beats():
    """Between entering and leaving, nobody else has a turn."""
    gate, inside, most = Gate(lambda: None), [], []

    def visit() -> None:
        ticket = Ticket()
        for _ in range(300):
            gate.enter(ticket)
            inside.append(ticket)
            most.append(len(inside))
            inside.remove(ticket)
            gate.leave(ticket)

    threads = [threading.Thread(target=visit, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == [1] * 2400
