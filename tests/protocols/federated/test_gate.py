"""Room for reports."""

from __future__ import annotations

from random import Random

import pytest

from invoker.protocols.federated.gate import LEAST_BYTES_PER_S, PATIENCE_S, SMALL_BYTES, Gate
from invoker.protocols.federated.timers import Timers
from tests.protocols.federated.house import House, population, task

BIG = SMALL_BYTES + 1


class Door:
    """A gate with a clock; writes down what it says."""

    def __init__(self, most: int) -> None:
        self.time = 0.0
        self.resumed: list[str] = []
        self.out: list[str] = []
        self.timers = Timers(lambda: self.time, lambda _: None)
        self.gate: Gate[str] = Gate(most, self.timers, resume=self.resumed.append, put_out=self.out.append)
        self.enter, self.leave, self.keep = self.gate.enter, self.gate.leave, self.gate.keep

    def passes(self, seconds: float) -> None:
        self.time += seconds
        self.timers.run()


def test_F081_large_messages_wait_for_room_in_the_order_of_their_coming():
    """Two fit; the third and fourth go on when there is room; a later one does not overtake them."""
    door = Door(2 * BIG)
    assert door.enter("a", BIG)
    assert door.enter("b", BIG)
    assert not door.enter("c", BIG)
    assert not door.enter("d", BIG)
    assert door.gate.waiting == 2
    door.leave("a")
    assert door.resumed == ["c"]
    assert not door.enter("e", BIG)
    door.leave("c")
    door.leave("c")
    assert door.resumed == ["c", "d"]
    assert door.gate.held == 2 * BIG


def test_F081_a_message_that_would_fit_does_not_overtake_one_that_does_not():
    """Else a large one could wait for ever."""
    door = Door(3 * BIG)
    assert door.enter("a", 2 * BIG)
    assert not door.enter("b", 2 * BIG)
    assert not door.enter("c", BIG)
    door.leave("a")
    assert door.resumed == ["b", "c"]


def test_F081_small_messages_need_no_room():
    """They come even if there is none."""
    door = Door(BIG)
    assert door.enter("a", BIG)
    assert door.enter("b", SMALL_BYTES)
    assert door.gate.held == BIG


def test_F081_one_message_comes_however_large_it_is():
    """Else nobody would ever report it; all others wait until it is taken."""
    door = Door(BIG)
    assert door.enter("a", 10 * BIG)
    assert not door.enter("b", BIG)
    door.leave("a")
    assert door.resumed == ["b"]


def test_F081_a_report_keeps_its_room_until_it_is_taken():
    """Its size replaces that of its message, and a report that came without room takes it all the same."""
    door = Door(2 * BIG)
    assert door.enter("a", BIG)
    door.keep("a", 2 * BIG)
    assert door.gate.held == 2 * BIG
    door.keep("b", 3)
    assert not door.enter("c", BIG)
    door.leave("b")
    assert not door.resumed
    door.leave("a")
    assert door.resumed == ["c"]
    assert door.gate.held == BIG


def test_who_leaves_the_line_is_not_resumed():
    """The next one is."""
    door = Door(BIG)
    door.enter("a", BIG)
    door.enter("b", BIG)
    door.enter("c", BIG)
    door.leave("b")
    door.leave("a")
    assert door.resumed == ["c"]
    door.leave("c")
    assert door.gate.held == 0
    assert door.timers.next() is None


def test_F081_who_sends_too_slowly_is_put_out_while_others_wait():
    """After a minute and the time that its bytes take at the least rate; its room goes to the next one."""
    door = Door(2 * BIG)
    limit = PATIENCE_S + BIG / LEAST_BYTES_PER_S
    assert door.enter("slow", BIG)
    door.passes(limit / 2)
    assert door.enter("later", BIG)
    assert not door.enter("c", BIG)
    door.passes(limit / 2 - 0.01)
    assert not door.out
    door.passes(0.02)
    assert door.out == ["slow"]
    assert door.resumed == ["c"]
    assert not door.enter("d", BIG)
    door.passes(limit / 2)
    assert door.out == ["slow", "later"]
    assert door.resumed == ["c", "d"]


def test_F081_who_sends_slowly_is_not_put_out_while_nobody_waits():
    """As soon as somebody does, it is; a report that is complete is not slow."""
    door = Door(2 * BIG)
    assert door.enter("slow", BIG)
    assert door.enter("done", BIG)
    door.keep("done", BIG)
    door.passes(1000)
    assert not door.out
    assert not door.enter("c", BIG)
    door.passes(0)
    assert door.out == ["slow"]
    assert not door.enter("d", BIG)
    door.keep("c", BIG)
    door.passes(1000)
    assert door.out == ["slow"]
    assert door.timers.next() is None


def test_F081_who_comes_in_while_others_wait_is_watched_too():
    """Nobody was coming when they began to wait, because all the room was taken by reports."""
    door = Door(2 * BIG)
    for one in "ab":
        door.keep(one, BIG)
    assert not door.enter("slow", BIG)
    assert not door.enter("d", BIG)
    assert door.timers.next() is None
    door.leave("a")
    assert door.resumed == ["slow"]
    door.passes(1000)
    assert door.out == ["slow"]
    assert door.resumed == ["slow", "d"]


def test_F081_a_report_that_comes_out_of_turn_is_not_resumed():
    """It has its room already."""
    door = Door(BIG)
    door.enter("a", BIG)
    assert not door.enter("b", BIG)
    door.keep("b", BIG)
    door.leave("a")
    assert door.resumed == []
    assert door.gate.held == BIG


def test_F081_rounding_of_times_keeps_nobody_waiting():
    """Whatever the clock shows, who is slow is put out when the desk is called at the times that it asked for."""
    dice = Random(5)
    for _ in range(300):
        door = Door(BIG)
        door.time = dice.random() * dice.choice([1e-3, 1, 10, 1e6])
        door.enter("slow", BIG)
        door.time += dice.random() * 50
        door.enter("b", BIG)
        while not door.out and (at := door.timers.next()) is not None:
            door.time = max(door.time, at)
            door.timers.run()
        assert door.out == ["slow"]


def test_F081_no_more_are_put_out_than_others_wait_for():
    """One that was slow as well keeps its room if nobody needs it any more."""
    door = Door(2 * BIG)
    for one in "ab":
        assert door.enter(one, BIG)
    assert not door.enter("c", BIG)
    door.passes(1000)
    assert door.out == ["a"]
    assert door.resumed == ["c"]
    assert door.timers.next() is None


def test_F081_a_check_that_breaks_keeps_no_room_for_a_report():
    """The conversation ends, since that is a bug; the round goes on."""

    def check(update: bytes) -> None:
        if update == b"breaks it":
            raise KeyError("a bug")

    desk = House(population("iris", task(min_clients=1, checker=lambda _: check)))
    one, two = desk.clients(2)
    with pytest.raises(KeyError):
        one.report(b"breaks it")
    one.leave()
    assert desk.desk.held_bytes == 0
    two.report()
    assert desk.round().has_enough
