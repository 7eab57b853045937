"""What is due when."""

from __future__ import annotations

from functools import partial
from random import Random

from invoker.core.timers import Timers


class Clock:
    def __init__(self) -> None:
        self.time = 0.0
        self.woken: list[float] = []
        self.timers = Timers(lambda: self.time, self.woken.append)


def test_what_is_due_happens_in_the_order_of_its_time():
    """Also when it was asked for in another order, and when it asks for more."""
    clock, done = Clock(), []
    clock.timers.after(2, lambda: done.append("b"))
    clock.timers.after(1, lambda: (done.append("a"), clock.timers.after(0, lambda: done.append("c"))))
    clock.timers.after(3, lambda: done.append("d"))
    assert clock.timers.next() == 1
    clock.time = 2
    clock.timers.run()
    assert done == ["a", "b", "c"]
    assert clock.timers.next() == 3


def test_the_service_is_woken_for_what_is_earlier_than_all_else():
    """It hears nothing of what is due later than something that it knows."""
    clock = Clock()
    for delay in (5, 7, 3, 4):
        clock.timers.after(delay, lambda: None)
    assert clock.woken == [5, 3]


def test_what_is_left_happens_in_order_when_many_were_cancelled():
    """Whatever was taken out, and in whichever order they came."""
    dice = Random(3)
    for _ in range(50):
        clock, done = Clock(), []
        made = [clock.timers.after(at, partial(done.append, at)) for at in dice.sample(range(300), 200)]
        for one in dice.sample(made, 190):
            one.cancel()
        clock.time = 300
        clock.timers.run()
        assert len(done) == 10
        assert done == sorted(done)


def test_what_is_cancelled_does_not_happen_and_needs_no_memory():
    """Most of a long list of cancelled ones is gone before their time."""
    clock, done = Clock(), []
    kept = clock.timers.after(60, lambda: done.append("kept"))
    for _ in range(10_000):
        clock.timers.after(50, lambda: done.append("cancelled")).cancel()
    assert len(clock.timers._heap) < 100
    assert clock.timers.next() == 60
    clock.time = 60
    clock.timers.run()
    assert done == ["kept"]
    kept.cancel()
    assert clock.timers.next() is None
