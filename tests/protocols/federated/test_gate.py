"""Room for reports."""

from __future__ import annotations

from random import Random

import pytest

from invoker.errors import Status
from invoker.protocols.federated.gate import LEAST_BYTES_PER_S, PATIENCE_S, SMALL_BYTES, Gate
from invoker.protocols.federated.timers import Timers
from tests.protocols.federated.house import House, population, task

BIG = SMALL_BYTES + 1
STEP = SMALL_BYTES
HUGE = 60 * 2**20


class Door:
    """A gate with a clock; writes down what it says. The owner of a key is its first letter, if that is upper case."""

    def __init__(self, most: int) -> None:
        self.time = 0.0
        self.resumed: list[str] = []
        self.out: list[str] = []
        self.timers = Timers(lambda: self.time, lambda _: None)
        self.gate: Gate[str] = Gate(
            most,
            self.timers,
            owner=lambda key: key[0] if key[0].isupper() else "",
            resume=self.resumed.append,
            put_out=self.out.append,
        )
        self.ask, self.leave, self.keep = self.gate.ask, self.gate.leave, self.gate.keep

    def whole(self, key: str, size: int) -> bool:
        """Ask for all of a message at once."""
        return self.ask(key, size, size)

    def come(self, key: str, size: int, start: int = 0) -> int:
        """A message comes step by step, as far as it may; gives how far that is."""
        for upto in range(min(start + STEP, size), size + STEP, STEP):
            if not self.ask(key, size, min(upto, size)):
                return upto - STEP
        return size

    def passes(self, seconds: float) -> None:
        self.time += seconds
        self.timers.run()


def full(most: int = 2 * BIG) -> Door:
    """A gate whose room is taken by complete reports, so that nobody may finish."""
    door = Door(most)
    door.keep("kept", most - BIG)
    assert door.whole("one", BIG)
    door.keep("one", BIG)
    return door


def test_F081_who_finds_no_room_waits_until_reports_are_taken():
    """In the order of their coming; twice the room is the most that is ever taken."""
    door = full()
    for key in "cdef":
        assert not door.whole(key, BIG)
    assert door.gate.waiting == 4
    door.leave("kept")
    assert door.resumed == ["c", "d"]
    assert door.gate.held == 3 * BIG
    door.leave("one")
    door.leave("one")
    assert door.resumed == ["c", "d", "e"]
    door.keep("c", BIG)
    door.keep("d", BIG)
    door.leave("e")
    assert door.resumed == ["c", "d", "e"]
    assert door.gate.held == 2 * BIG
    door.leave("c")
    assert door.resumed[-1] == "f"


def test_F081_small_messages_need_no_room():
    """They come even if there is none."""
    door = full()
    assert door.whole("b", SMALL_BYTES)
    assert door.gate.held == 2 * BIG


def test_F081_one_message_comes_however_large_it_is():
    """Else nobody would ever report it; the next one waits until it is taken."""
    door = Door(BIG)
    assert door.whole("a", 10 * BIG)
    assert not door.whole("b", BIG)
    door.keep("a", 10 * BIG)
    assert not door.resumed
    door.leave("a")
    assert door.resumed == ["b"]


def test_F138_what_is_announced_and_does_not_come_holds_up_nobody():
    """Two hundred announce 60 MiB, send 32 KiB and stand still: others report 60 MiB at once, one after the other."""
    door = Door(64 * 2**20)
    for number in range(200):
        assert door.ask(f"stalls {number}", HUGE, STEP)
    assert door.gate.held == 200 * STEP
    for owner in "ABA":
        key = f"{owner} reports"
        assert door.come(key, HUGE) == HUGE
        door.keep(key, HUGE)
        door.leave(key)
    assert door.time == 0
    assert not door.out


@pytest.mark.parametrize("key", ["reports", "B reports"])
def test_F138_those_that_have_filled_all_room_and_stand_still_hold_up_nobody(key):
    """Who is behind them comes whole, beside them; they are put out as soon as others wait."""
    door = Door(64 * 2**20)
    for number in range(1024):
        assert door.ask(f"stalls {number}", HUGE, STEP)
    assert door.gate.held == 64 * 2**20
    for _ in range(3):
        assert door.come(key, HUGE) == HUGE
        door.keep(key, HUGE)
        door.leave(key)
    assert door.come("first", HUGE) == HUGE
    assert door.come("waits", HUGE) == 0
    door.passes(PATIENCE_S + STEP / LEAST_BYTES_PER_S)
    assert 0 < len(door.out) < 1024
    assert door.resumed == ["waits"]


def test_F138_reports_of_one_owner_that_wait_for_its_function_hold_up_no_other():
    """A population whose function is slow has filled the room; another one still gets one report after the other."""
    door = full(64 * 2**20)
    assert not door.whole("waits", HUGE)
    for _ in range(3):
        assert door.come("B", HUGE) == HUGE
        assert not door.whole("B waits", HUGE)
        door.keep("B", HUGE)
        door.leave("B")
        assert door.resumed.pop() == "B waits"
        door.leave("B waits")
    assert door.gate.waiting == 1


def test_F081_those_of_which_most_has_come_finish_first():
    """They have cost their clients most; who has sent nothing cannot take their place by having come first."""
    door = Door(2 * HUGE)
    keys = [f"half {number}" for number in range(4)]
    come = dict.fromkeys(keys, 0)
    while door.gate.held < 2 * HUGE:
        for key in keys:
            come[key] += STEP
            assert door.ask(key, HUGE, come[key])
    assert door.come("finishes", 2 * HUGE) == 2 * HUGE
    assert door.come("late", HUGE) == 0
    for key in keys:
        assert door.come(key, HUGE, come[key]) == come[key]
    door.leave("finishes")
    assert door.resumed == keys[:2]


def test_F081_a_report_keeps_its_room_until_it_is_taken():
    """Its size replaces that of its message, and a report that came without room takes it all the same."""
    door = Door(2 * BIG)
    assert door.whole("a", BIG)
    door.keep("a", 2 * BIG)
    assert door.gate.held == 2 * BIG
    door.keep("b", 3)
    assert not door.whole("c", BIG)
    door.leave("b")
    assert not door.resumed
    door.leave("a")
    assert door.resumed == ["c"]
    assert door.gate.held == BIG


def test_who_leaves_the_line_is_not_resumed():
    """The next one is."""
    door = full()
    door.whole("b", BIG)
    door.whole("c", BIG)
    door.leave("b")
    door.leave("one")
    assert door.resumed == ["c"]
    door.leave("c")
    door.leave("kept")
    assert door.gate.held == 0
    assert door.timers.next() is None


def crowded() -> Door:
    """A gate with room for two of `BIG`, at which none that has three of them may finish."""
    door = Door(4 * BIG)
    door.keep("kept", 2 * BIG)
    return door


def test_F081_who_sends_too_slowly_is_put_out_while_others_wait():
    """After some seconds and the time that its bytes take at the least rate; its room goes to the next one."""
    door = crowded()
    limit = PATIENCE_S + BIG / LEAST_BYTES_PER_S
    assert door.whole("slow", BIG)
    door.passes(limit / 2)
    assert door.whole("later", BIG)
    assert not door.ask("c", 3 * BIG, BIG)
    door.passes(limit / 2 - 0.01)
    assert not door.out
    door.passes(0.02)
    assert door.out == ["slow"]
    assert door.resumed == ["c"]
    assert not door.ask("d", 3 * BIG, BIG)
    door.passes(limit / 2)
    assert door.out == ["slow", "later"]
    assert door.resumed == ["c", "d"]


def test_F081_who_finishes_step_by_step_at_less_than_the_least_rate_is_put_out():
    """Though each step comes in time; else it would hold up others as long as it likes."""
    door = Door(2 * BIG)
    door.keep("kept", 2 * BIG)
    door.keep("B kept", 1)
    door.leave("B kept")
    assert door.ask("B slow", HUGE, STEP)
    assert not door.whole("B waits", BIG)
    took = 0.0
    for upto in range(2 * STEP, HUGE, STEP):
        door.passes(PATIENCE_S - 1)
        took += PATIENCE_S - 1
        if door.out:
            break
        assert door.ask("B slow", HUGE, upto)
    assert door.out == ["B slow"]
    assert took < PATIENCE_S + HUGE / LEAST_BYTES_PER_S + PATIENCE_S
    assert door.resumed == ["B waits"]


def test_F081_who_sends_slowly_is_not_put_out_while_nobody_waits():
    """As soon as somebody does, it is; a report that is complete is not slow."""
    door = Door(2 * BIG)
    assert door.whole("slow", BIG)
    assert door.whole("done", BIG)
    door.keep("done", 2 * BIG)
    door.passes(1000)
    assert not door.out
    assert not door.whole("c", BIG)
    door.passes(0)
    assert door.out == ["slow"]
    assert not door.whole("d", BIG)
    door.keep("c", BIG)
    door.passes(1000)
    assert door.out == ["slow"]
    assert door.timers.next() is None


def test_F081_who_comes_in_while_others_wait_is_watched_too():
    """Nobody was coming when they began to wait, because all the room was taken by reports."""
    door = full()
    assert not door.whole("slow", BIG)
    assert not door.whole("d", BIG)
    assert door.timers.next() is None
    assert not door.whole("e", BIG)
    door.leave("kept")
    assert door.resumed == ["slow", "d"]
    assert not door.out
    door.passes(1000)
    assert door.out[0] == "slow"
    assert door.resumed == ["slow", "d", "e"]


def test_F081_a_report_that_comes_out_of_turn_is_not_resumed():
    """It has its room already."""
    door = full()
    assert not door.whole("b", BIG)
    door.keep("b", BIG)
    door.leave("kept")
    assert door.resumed == []
    assert door.gate.held == 2 * BIG


def test_F081_rounding_of_times_keeps_nobody_waiting():
    """Whatever the clock shows, who is slow is put out when the desk is called at the times that it asked for."""
    dice = Random(5)
    for _ in range(300):
        door = Door(BIG)
        door.time = dice.random() * dice.choice([1e-3, 1, 10, 1e6])
        door.whole("slow", 2 * BIG)
        door.time += dice.random() * PATIENCE_S
        door.whole("b", BIG)
        while not door.out and (at := door.timers.next()) is not None:
            door.time = max(door.time, at)
            door.timers.run()
        assert door.out == ["slow"]


def test_F081_no_more_are_put_out_than_others_wait_for():
    """One that was slow as well keeps its room if nobody needs it any more."""
    door = crowded()
    for one in "ab":
        assert door.whole(one, BIG)
    assert not door.ask("c", 3 * BIG, BIG)
    door.passes(1000)
    assert door.out == ["a"]
    assert door.resumed == ["c"]
    assert door.timers.next() is None


@pytest.mark.parametrize("seed", range(30))
def test_F081_whatever_comes_room_is_bounded_and_all_get_through_that_send(seed):
    """Messages of two owners in steps, some of which stand still: twice the room, and a message of each owner."""
    dice, most, large = Random(seed), 10 * STEP, 9 * STEP
    door = Door(most)
    sizes = {f"{dice.choice('AB')}{number}": dice.randint(BIG, large) for number in range(60)}
    stalls = {key: dice.randrange(4) * STEP for key in sizes if dice.random() < 0.3}
    come, left, kept = dict.fromkeys(sizes, 0), dict.fromkeys(sizes), set[str]()
    while any(key not in stalls for key in left):
        for key in dice.sample(list(left), len(left)):
            if key in door.out:
                del left[key]
            elif come[key] == sizes[key]:
                door.keep(key, sizes[key])
                kept.add(key)
                del left[key]
            elif key in door.resumed or (
                key not in door.gate._line
                and come[key] < stalls.get(key, large)
                and door.ask(key, sizes[key], min(come[key] + STEP, sizes[key]))
            ):
                door.resumed = [one for one in door.resumed if one != key]
                if come[key] < stalls.get(key, large):
                    come[key] = min(come[key] + STEP, sizes[key])
            assert door.gate.held <= 2 * most + 2 * large
        for key in [one for one in kept if dice.random() < 0.5]:
            kept.remove(key)
            door.leave(key)
        door.passes(0.2)
        assert door.time < 600
    assert set(door.out) <= set(stalls)
    for key in sizes:
        door.leave(key)
    assert door.gate.held == 0
    assert door.timers.next() is None


def test_F081_a_check_that_breaks_keeps_no_room_for_a_report(caplog):
    """The conversation ends, since that is a bug, which the log tells; the round goes on."""

    def check(update: bytes) -> None:
        if update == b"breaks it":
            raise KeyError("a bug")

    desk = House(population("iris", task(min_clients=1, checker=lambda _: check)))
    one, two = desk.clients(2)
    one.report(b"breaks it")
    assert one.error.status is Status.INTERNAL
    assert "a bug" not in str(one.error)
    assert "KeyError: 'a bug'" in caplog.text
    one.leave()
    assert desk.desk.held_bytes == 0
    two.report()
    assert desk.round().has_enough
