"""Room for reports."""

from __future__ import annotations

from random import Random

import pytest

from invoker.errors import Status
from invoker.protocols.federated.gate import LEAST_BYTES_PER_S, PATIENCE_S, SMALL_BYTES
from tests.protocols.federated.gates import BIG, HUGE, STEP, Served, full
from tests.protocols.federated.house import House, population, task


def test_F081_who_finds_no_room_waits_until_reports_are_taken():
    """In the order of their coming; twice the room is the most that is ever taken."""
    served = full()
    for key in "cdef":
        assert not served.whole(key, BIG)
    assert served.gate.waiting == 4
    served.leave("kept")
    assert served.resumed == ["c", "d"]
    assert served.gate.held == 3 * BIG
    served.leave("one")
    served.leave("one")
    assert served.resumed == ["c", "d", "e"]
    served.keep("c", BIG)
    served.keep("d", BIG)
    served.leave("e")
    assert served.resumed == ["c", "d", "e"]
    assert served.gate.held == 2 * BIG
    served.leave("c")
    assert served.resumed[-1] == "f"


def test_F081_small_messages_need_no_room():
    """They come even if there is none."""
    served = full()
    assert served.whole("b", SMALL_BYTES)
    assert served.gate.held == 2 * BIG


def test_F081_one_message_comes_however_large_it_is():
    """Else nobody would ever report it; the next one waits until it is taken."""
    served = Served(BIG)
    assert served.whole("a", 10 * BIG)
    assert not served.whole("b", BIG)
    served.keep("a", 10 * BIG)
    assert not served.resumed
    served.leave("a")
    assert served.resumed == ["b"]


def test_F138_what_is_announced_and_does_not_come_holds_up_nobody():
    """Two hundred announce 60 MiB, send 32 KiB and stand still: others report 60 MiB at once, one after the other."""
    served = Served(64 * 2**20)
    for number in range(200):
        assert served.ask(f"stalls {number}", HUGE, STEP)
    assert served.gate.held == 200 * STEP
    for owner in "ABA":
        key = f"{owner} reports"
        assert served.come(key, HUGE) == HUGE
        served.keep(key, HUGE)
        served.leave(key)
    assert served.time == 0
    assert not served.out


@pytest.mark.parametrize("key", ["reports", "B reports"])
def test_F138_those_that_have_filled_all_room_and_stand_still_hold_up_nobody(key):
    """Who is behind them comes whole, beside them; they are put out as soon as others wait."""
    served = Served(64 * 2**20)
    for number in range(1024):
        assert served.ask(f"stalls {number}", HUGE, STEP)
    assert served.gate.held == 64 * 2**20
    for _ in range(3):
        assert served.come(key, HUGE) == HUGE
        served.keep(key, HUGE)
        served.leave(key)
    assert served.come("first", HUGE) == HUGE
    assert served.come("waits", HUGE) == 0
    served.passes(PATIENCE_S + STEP / LEAST_BYTES_PER_S)
    assert 0 < len(served.out) < 1024
    assert served.resumed == ["waits"]


def test_F138_reports_of_one_owner_that_wait_for_its_function_hold_up_no_other():
    """A population whose function is slow has filled the room; another one still gets one report after the other."""
    served = full(64 * 2**20)
    assert not served.whole("waits", HUGE)
    for _ in range(3):
        assert served.come("B", HUGE) == HUGE
        assert not served.whole("B waits", HUGE)
        served.keep("B", HUGE)
        served.leave("B")
        assert served.resumed.pop() == "B waits"
        served.leave("B waits")
    assert served.gate.waiting == 1


def test_F081_those_of_which_most_has_come_finish_first():
    """They have cost their clients most; who has sent nothing cannot take their place by having come first."""
    served = Served(2 * HUGE)
    keys = [f"half {number}" for number in range(4)]
    come = dict.fromkeys(keys, 0)
    while served.gate.held < 2 * HUGE:
        for key in keys:
            come[key] += STEP
            assert served.ask(key, HUGE, come[key])
    assert served.come("finishes", 2 * HUGE) == 2 * HUGE
    assert served.come("late", HUGE) == 0
    for key in keys:
        assert served.come(key, HUGE, come[key]) == come[key]
    served.leave("finishes")
    assert served.resumed == keys[:2]


def test_F081_a_report_keeps_its_room_until_it_is_taken():
    """Its size replaces that of its message, and a report that came without room takes it all the same."""
    served = Served(2 * BIG)
    assert served.whole("a", BIG)
    served.keep("a", 2 * BIG)
    assert served.gate.held == 2 * BIG
    served.keep("b", 3)
    assert not served.whole("c", BIG)
    served.leave("b")
    assert not served.resumed
    served.leave("a")
    assert served.resumed == ["c"]
    assert served.gate.held == BIG


def test_who_leaves_the_line_is_not_resumed():
    """The next one is."""
    served = full()
    served.whole("b", BIG)
    served.whole("c", BIG)
    served.leave("b")
    served.leave("one")
    assert served.resumed == ["c"]
    served.leave("c")
    served.leave("kept")
    assert served.gate.held == 0
    assert served.timers.next() is None


def crowded() -> Served:
    """A gate with room for two of `BIG`, at which none that has three of them may finish."""
    served = Served(4 * BIG)
    served.keep("kept", 2 * BIG)
    return served


def test_F081_who_sends_too_slowly_is_put_out_while_others_wait():
    """After some seconds and the time that its bytes take at the least rate; its room goes to the next one."""
    served = crowded()
    limit = PATIENCE_S + BIG / LEAST_BYTES_PER_S
    assert served.whole("slow", BIG)
    served.passes(limit / 2)
    assert served.whole("later", BIG)
    assert not served.ask("c", 3 * BIG, BIG)
    served.passes(limit / 2 - 0.01)
    assert not served.out
    served.passes(0.02)
    assert served.out == ["slow"]
    assert served.resumed == ["c"]
    assert not served.ask("d", 3 * BIG, BIG)
    served.passes(limit / 2)
    assert served.out == ["slow", "later"]
    assert served.resumed == ["c", "d"]


def test_F081_who_finishes_step_by_step_at_less_than_the_least_rate_is_put_out():
    """Though each step comes in time; else it would hold up others as long as it likes."""
    served = Served(2 * BIG)
    served.keep("kept", 2 * BIG)
    served.keep("B kept", 1)
    served.leave("B kept")
    assert served.ask("B slow", HUGE, STEP)
    assert not served.whole("B waits", BIG)
    took = 0.0
    for upto in range(2 * STEP, HUGE, STEP):
        served.passes(PATIENCE_S - 1)
        took += PATIENCE_S - 1
        if served.out:
            break
        assert served.ask("B slow", HUGE, upto)
    assert served.out == ["B slow"]
    assert took < PATIENCE_S + HUGE / LEAST_BYTES_PER_S + PATIENCE_S
    assert served.resumed == ["B waits"]


def test_F081_who_sends_slowly_is_not_put_out_while_nobody_waits():
    """As soon as somebody does, it is; a report that is complete is not slow."""
    served = Served(2 * BIG)
    assert served.whole("slow", BIG)
    assert served.whole("done", BIG)
    served.keep("done", 2 * BIG)
    served.passes(1000)
    assert not served.out
    assert not served.whole("c", BIG)
    served.passes(0)
    assert served.out == ["slow"]
    assert not served.whole("d", BIG)
    served.keep("c", BIG)
    served.passes(1000)
    assert served.out == ["slow"]
    assert served.timers.next() is None


def test_F081_who_comes_in_while_others_wait_is_watched_too():
    """Nobody was coming when they began to wait, because all the room was taken by reports."""
    served = full()
    assert not served.whole("slow", BIG)
    assert not served.whole("d", BIG)
    assert served.timers.next() is None
    assert not served.whole("e", BIG)
    served.leave("kept")
    assert served.resumed == ["slow", "d"]
    assert not served.out
    served.passes(1000)
    assert served.out[0] == "slow"
    assert served.resumed == ["slow", "d", "e"]


def test_F081_a_report_that_comes_out_of_turn_is_not_resumed():
    """It has its room already."""
    served = full()
    assert not served.whole("b", BIG)
    served.keep("b", BIG)
    served.leave("kept")
    assert served.resumed == []
    assert served.gate.held == 2 * BIG


def test_F081_rounding_of_times_keeps_nobody_waiting():
    """Whatever the clock shows, who is slow is put out when the coordinator is called at the times it asked for."""
    dice = Random(5)
    for _ in range(300):
        served = Served(BIG)
        served.time = dice.random() * dice.choice([1e-3, 1, 10, 1e6])
        served.whole("slow", 2 * BIG)
        served.time += dice.random() * PATIENCE_S
        served.whole("b", BIG)
        while not served.out and (at := served.timers.next()) is not None:
            served.time = max(served.time, at)
            served.timers.run()
        assert served.out == ["slow"]


def test_F081_no_more_are_put_out_than_others_wait_for():
    """One that was slow as well keeps its room if nobody needs it any more."""
    served = crowded()
    for one in "ab":
        assert served.whole(one, BIG)
    assert not served.ask("c", 3 * BIG, BIG)
    served.passes(1000)
    assert served.out == ["a"]
    assert served.resumed == ["c"]
    assert served.timers.next() is None


@pytest.mark.parametrize("seed", range(30))
def test_F081_whatever_comes_room_is_bounded_and_all_get_through_that_send(seed):
    """Messages of two owners in steps, some of which stand still: twice the room, and a message of each owner."""
    dice, most, large = Random(seed), 10 * STEP, 9 * STEP
    served = Served(most)
    sizes = {f"{dice.choice('AB')}{number}": dice.randint(BIG, large) for number in range(60)}
    stalls = {key: dice.randrange(4) * STEP for key in sizes if dice.random() < 0.3}
    come, left, kept = dict.fromkeys(sizes, 0), dict.fromkeys(sizes), set[str]()
    while any(key not in stalls for key in left):
        for key in dice.sample(list(left), len(left)):
            if key in served.out:
                del left[key]
            elif come[key] == sizes[key]:
                served.keep(key, sizes[key])
                kept.add(key)
                del left[key]
            elif key in served.resumed or (
                key not in served.gate._line
                and come[key] < stalls.get(key, large)
                and served.ask(key, sizes[key], min(come[key] + STEP, sizes[key]))
            ):
                served.resumed = [one for one in served.resumed if one != key]
                if come[key] < stalls.get(key, large):
                    come[key] = min(come[key] + STEP, sizes[key])
            assert served.gate.held <= 2 * most + 2 * large
        for key in [one for one in kept if dice.random() < 0.5]:
            kept.remove(key)
            served.leave(key)
        served.passes(0.2)
        assert served.time < 600
    assert set(served.out) <= set(stalls)
    for key in sizes:
        served.leave(key)
    assert served.gate.held == 0
    assert served.timers.next() is None


def test_F081_a_check_that_breaks_keeps_no_room_for_a_report(caplog):
    """The conversation ends, since that is a bug, which the log tells; the round goes on."""

    def check(update: bytes) -> None:
        if update == b"breaks it":
            raise KeyError("a bug")

    coordinator = House(population("iris", task(min_clients=1, checker=lambda _: check)))
    one, two = coordinator.clients(2)
    one.report(b"breaks it")
    assert one.error.status is Status.INTERNAL
    assert "a bug" not in str(one.error)
    assert "KeyError: 'a bug'" in caplog.text
    one.leave()
    assert coordinator.coordinator.held_bytes == 0
    two.report()
    assert coordinator.round().has_enough
