"""Turns at the gate."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from invoker.drive.gate import Gate, Ticket


class Guests:
    """Threads that wait at a gate, each of which is known to wait before the next one comes."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self.gate = Gate(self.came.release)
        self.order: list[int] = []
        self.threads: list[threading.Thread] = []

    def add(self, number: int, ticket: Ticket | None = None, *, leaves: bool = True) -> None:
        """Send one to the gate; it has to wait."""
        ticket = ticket or Ticket()

        def visit() -> None:
            self.gate.enter(ticket)
            self.order.append(number)
            if leaves:
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
    guests.gate.enter(me)
    for number in range(8):
        guests.add(number)
    assert guests.gate.is_waited_for
    assert guests.order == []
    guests.gate.leave(me)
    guests.join()
    assert guests.order == list(range(8))
    assert not guests.gate.is_waited_for


def test_a_free_gate_lets_in_at_once_and_twice():
    """Who has a turn keeps it, and nobody is told to wait."""
    gate, me = Gate(lambda: pytest.fail("nobody has to wait")), Ticket()
    gate.enter(me)
    gate.enter(me)
    gate.leave(me)
    other = Ticket()
    gate.enter(other)
    gate.leave(other)
    assert not gate.beat()


def test_a_long_turn_ends_by_beat():
    """A turn that lasts from one beat to the next goes to the one who waits; its late end takes nothing away."""
    guests, me = Guests(), Ticket()
    guests.gate.enter(me)
    guests.add(1, leaves=False)
    assert guests.gate.beat()
    assert guests.order == []
    assert guests.gate.beat()
    guests.join()
    assert guests.order == [1]
    guests.gate.leave(me)
    guests.add(2)
    assert guests.order == [1]
    guests.gate.beat()
    guests.gate.beat()
    guests.join()
    assert guests.order == [1, 2]


def test_short_turns_outlive_beats():
    """Another turn of the same thread is another turn, so a beat between them ends neither."""
    guests, me = Guests(), Ticket()
    guests.gate.enter(me)
    guests.gate.beat()
    guests.gate.leave(me)
    guests.gate.enter(me)
    guests.add(1)
    guests.gate.beat()
    assert guests.order == []
    guests.gate.leave(me)
    guests.join()


def test_a_long_turn_that_nobody_waits_for_ends_too():
    """Then the gate is free for whoever comes."""
    gate, me, other = Gate(lambda: pytest.fail("nobody has to wait")), Ticket(), Ticket()
    gate.enter(me)
    assert gate.beat()
    assert not gate.beat()
    gate.enter(other)
    gate.leave(me)
    assert gate.beat()


def test_leaving_without_a_turn_is_harmless():
    """Neither at a free gate nor in the turn of another one."""
    guests, me, stranger = Guests(), Ticket(), Ticket()
    guests.gate.leave(stranger)
    guests.gate.enter(me)
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
def test_no_wake_up_is_lost():
    """16 threads with 2,000 turns each, ended by themselves and by beats, all come to their end."""
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
