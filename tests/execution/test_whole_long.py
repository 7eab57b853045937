"""Whole conversations that last longer than a beat: what leaves early, and how they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from invoker import Context
from invoker.errors import DeadlineExceeded, Overloaded, ShuttingDown
from tests.execution.memory import driver_of
from tests.execution.wholes import LIMIT_S, WholeCall
from tests.execution.wires import direct_driver, gen


def paused(count: int, inside: threading.Event, go: threading.Event):
    def give() -> Iterator[int]:
        yield from range(count)
        inside.set()
        assert go.wait(LIMIT_S)
        yield from range(count, count + 2)

    return give


def test_what_is_kept_leaves_after_a_beat_and_what_follows_leaves_at_once():
    """The lead is passed on then, and the sweeper knows the conversation."""
    inside, go = threading.Event(), threading.Event()
    call = WholeCall(direct_driver(paused(3, inside, go))).start().run()
    assert inside.wait(LIMIT_S)
    assert call.outlet.left == []
    call.turn.busy.beat()
    assert call.early(3) == [b"0", b"1", b"2"]
    assert call.turn.passed == 1
    assert call.driver.sweeper.conversations == [call.whole]
    call.turn.busy.beat()  # nothing more happens
    assert call.turn.passed == 1
    go.set()
    assert call.early(5) == [b"%d" % n for n in range(5)]
    assert call.end() is None
    assert call.whole.sent == []


def test_a_beat_after_the_end_does_nothing():
    """The transport has what was kept."""
    call = WholeCall(direct_driver(gen)).start().data(b"1")
    assert call.end() is None
    call.whole.beat()
    assert call.outlet.left == []
    assert call.driver.sweeper.conversations == []
    assert call.whole.sweep(0) is False


def test_a_slow_function_is_long_from_the_beginning():
    """What it took long for once is expected again, for a second; then it is given a beat again."""
    slow_s = [0.02]

    def nap() -> Iterator[int]:
        yield 1
        time.sleep(slow_s[0])

    driver, began_s = direct_driver(nap), time.monotonic()
    first = WholeCall(driver).start().run()
    assert first.turn.begun.wait(LIMIT_S)
    first.whole.beat()
    assert first.end() is None
    slow_s[0] = 0
    pace = driver.pace(first.whole.invocation.function)
    assert began_s + 1 <= pace.slow_until <= time.monotonic() + 1
    pace.slow_until += 60  # on a busy machine the second is over before the next call begins
    second = WholeCall(driver).start()
    assert second.end() is None
    assert second.outlet.left
    assert not second.turn.begun.is_set()
    assert second.turn.passed == 1
    driver.pace(second.whole.invocation.function).slow_until = time.monotonic() - 0.001
    third = WholeCall(driver).start()
    assert third.end() is None
    assert third.outlet.left == []


def test_without_a_turn_each_output_leaves_at_once():
    """Nobody tells such a conversation of a beat."""
    call = WholeCall(direct_driver(gen), has_turn=False).start().data(b"1").data(b"2")
    assert call.end() is None
    assert len(call.outlet.left) == 2


def test_R127_a_large_reply_leaves_in_pieces_and_waits_for_its_peer():
    """Little more than 64 KiB is kept; beyond it the function waits while the peer reads nothing."""
    made = []

    def much() -> Iterator[str]:
        for number in range(100):
            made.append(number)
            yield "x" * 16 * 1024

    call = WholeCall(direct_driver(much)).start()
    call.outlet.has_room.clear()
    call.run()
    assert call.turn.begun.wait(LIMIT_S)
    deadline = time.monotonic() + LIMIT_S
    while call.turn.passed == 0 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)  # it makes no more
    assert len(made) < 10
    call.outlet.has_room.set()
    assert call.end() is None
    assert len(call.payloads()) == 100


def test_R112_an_ending_is_told_while_user_code_takes_its_time_to_leave():
    """After the beat, or at once when it is long already; frames that were kept go before it."""
    for is_long in (True, False):
        failed, go = threading.Event(), threading.Event()

        def deaf(xs: Iterator[int], failed=failed, go=go) -> Iterator[int]:
            yield next(xs)
            try:
                next(xs)
            except Exception:
                failed.set()
            assert go.wait(LIMIT_S)
            yield 7

        call = WholeCall(direct_driver(deaf), has_turn=not is_long).start().data(b"1").data(b"x").run()
        assert failed.wait(LIMIT_S)
        if not is_long:
            assert not call.outlet.told
            call.whole.beat()
        assert str(call.await_told().error).startswith("Invoker: Bad Input Signal")
        assert call.early(1) == [b"1"]
        go.set()
        assert call.end() is not None
        assert call.payloads() == [b"1"]


def test_R116_a_deaf_function_is_counted_as_stuck_until_it_leaves():
    """Its peer is gone, and it neither pulls nor emits."""
    inside, go = threading.Event(), threading.Event()

    def deaf(x: int) -> int:
        inside.set()
        assert go.wait(LIMIT_S)
        return x

    call = WholeCall(direct_driver(deaf, grace_s=5)).start().data(b"1").run()
    assert inside.wait(LIMIT_S)
    call.turn.busy.beat()
    call.outlet.gone = True
    assert call.whole.sweep(100)
    assert call.whole.sweep(104)
    assert call.driver.threads.stuck == 0
    assert call.whole.sweep(106)
    assert call.driver.threads.stuck == 1
    go.set()
    call.end()
    assert call.driver.threads.stuck == 0
    assert not call.whole.sweep(107)


def test_R134_an_invocation_that_goes_on_for_long_is_logged(caplog):
    """Its inputs had ended before it began."""
    inside, go = threading.Event(), threading.Event()

    def work(x: int) -> int:
        inside.set()
        assert go.wait(LIMIT_S)
        return x

    call = WholeCall(direct_driver(work, lingering_s=60)).start().data(b"1").run()
    assert inside.wait(LIMIT_S)
    call.turn.busy.beat()
    assert call.whole.sweep(time.monotonic() + 61)
    assert "goes on although its inputs ended 60 s ago" in caplog.text
    go.set()
    assert call.end() is None


def test_frames_for_which_there_was_no_room_leave_with_a_later_look():
    """The sweeper does not wait; it comes back."""
    inside, go = threading.Event(), threading.Event()
    call = WholeCall(direct_driver(paused(3, inside, go))).start()
    call.outlet.has_room.clear()
    call.run()
    assert inside.wait(LIMIT_S)
    call.turn.busy.beat()
    assert call.outlet.left == []
    call.outlet.has_room.set()
    assert call.whole.sweep(time.monotonic())
    assert call.early(3) == [b"0", b"1", b"2"]
    go.set()
    assert call.end() is None
    assert call.payloads() == [b"%d" % n for n in range(5)]


# Drain, deadline, memory.


@pytest.mark.parametrize("pulls", [True, False])
def test_R025_a_cut_ends_a_running_call(pulls):
    """The peer is told by the transport at once; the next pull or emit stops the function."""
    inside, go, seen = threading.Event(), threading.Event(), []

    def busy(xs: Iterator[int], context: Context) -> Iterator[int]:
        next(xs)
        inside.set()
        assert go.wait(LIMIT_S)
        seen.append(context.cancelled)
        if pulls:
            next(xs)
        else:
            yield 1
        seen.append("went on")
        yield 2

    call = WholeCall(direct_driver(busy)).start().data(b"1").data(b"2").run()
    assert inside.wait(LIMIT_S)
    (direct,) = call.driver.direct
    direct.fail(ShuttingDown("cut"))
    go.set()
    assert isinstance(call.end(), ShuttingDown)
    assert [str(one) for one in call.outlet.cuts] == ["Invoker: Shutting Down: cut"]
    assert seen == [True]
    assert call.payloads() == []


def test_R124_a_deadline_that_has_passed_is_told_as_such():
    """The transport says that the peer is gone."""
    inside, go = threading.Event(), threading.Event()

    def busy() -> Iterator[int]:
        inside.set()
        assert go.wait(LIMIT_S)
        yield 1

    call = WholeCall(direct_driver(busy), deadline=time.monotonic()).start().run()
    assert inside.wait(LIMIT_S)
    call.turn.busy.beat()
    call.outlet.gone = True
    go.set()
    assert isinstance(call.end(), DeadlineExceeded)


def test_the_process_budget_ends_a_call_that_holds_the_most():
    """Its unread frames are charged; the budget ends it by `fail`."""
    inside, go = threading.Event(), threading.Event()

    def hold(xs: Iterator[str]) -> Iterator[str]:
        inside.set()
        assert go.wait(LIMIT_S)
        yield from xs

    driver = driver_of(hold)
    driver.sweeper.close()
    driver.engine.memory.most_bytes = 384 * 1024
    call = WholeCall(driver).start().data(b'"%s"' % (b"x" * 200 * 1024)).run()
    assert inside.wait(LIMIT_S)
    other = driver.engine.memory.share()
    other.end = lambda error: None
    other.grow(100 * 1024)
    body = driver.engine.memory.share()
    with pytest.raises(Overloaded):
        body.grow(100 * 1024)
    go.set()
    assert isinstance(call.outlet.cuts[0], Overloaded)
    other.close()
    assert isinstance(call.end(), Overloaded)
