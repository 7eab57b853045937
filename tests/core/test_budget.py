"""`invoker.core.budget`: what an invocation, and what all conversations together, may hold."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from typing import Any

import pytest

from invoker.author.spec import StreamSpec
from invoker.codecs import builtin
from invoker.core.budget import STEP_BYTES, Budget, Limits, ProcessBudget, Share, Unread
from invoker.core.coding import Decoders
from invoker.core.streams import InputStream
from invoker.errors import InvocationError, LimitExceeded, Overloaded, Status
from invoker.message import EMPTY, Message

STEP = STEP_BYTES


def invocation(process: ProcessBudget, ended: list[Any]) -> Share:
    """A share that can be ended, and is then closed by its driver at once."""
    share = process.share()

    def end(error: InvocationError) -> None:
        ended.append((share, error))
        share.close()

    share.end = end
    return share


def test_little_is_not_counted_and_much_is_counted_in_steps() -> None:
    """Up to a step nobody is asked; beyond it the charge is a little ahead of what is held."""
    process = ProcessBudget(100 * STEP)
    share = process.share()
    share.grow(STEP)
    assert process.held == share.charged == 0
    share.grow(STEP + 1)
    assert process.held == share.charged == share.mark == 2 * STEP
    share.grow(2 * STEP)
    assert process.held == 2 * STEP
    share.grow(20 * STEP)
    assert 20 * STEP <= process.held <= 23 * STEP


def test_what_is_read_is_given_back_once_it_is_half() -> None:
    """And all of it when the holder is over; a share can be used again."""
    process = ProcessBudget(100 * STEP)
    share = process.share()
    share.grow(10 * STEP)
    share.shrink(6 * STEP)
    assert process.held >= 10 * STEP
    share.shrink(4 * STEP)
    assert process.held == share.charged == share.mark == 4 * STEP
    share.shrink(STEP)
    assert (process.held, share.charged, share.mark) == (0, 0, STEP)
    share.grow(10 * STEP)
    share.close()
    assert (process.held, share.charged, share.mark) == (0, 0, STEP)


def test_a_body_that_does_not_fit_is_refused_and_the_largest_invocation_ends() -> None:
    """The body may be tried again: 503, or RESOURCE_EXHAUSTED. The invocation is told why, and the setting."""
    process, ended = ProcessBudget(10 * STEP), list[Any]()
    small, large, body = invocation(process, ended), invocation(process, ended), process.share()
    small.grow(3 * STEP)
    large.grow(5 * STEP)
    with pytest.raises(Overloaded, match=f"holds {8 * STEP} bytes .* is {10 * STEP} bytes .INVOKER_MEMORY_BYTES."):
        body.grow(4 * STEP)
    assert [share for share, _ in ended] == [large]
    assert ended[0][1].status is Status.RESOURCE_EXHAUSTED
    assert process.held == 3 * STEP
    assert body.charged == 0
    body.grow(4 * STEP)


def cache(process: ProcessBudget, emptied: list[Any]) -> Share:
    """A share that is emptied when memory is short, and filled again later."""
    share = process.share(is_cache=True)

    def end(_: InvocationError) -> None:
        emptied.append(share)
        share.shrink(0)

    share.end = end
    return share


@pytest.mark.parametrize("kind", ["body", "call", "the call that holds most"])
@pytest.mark.parametrize(("wanted", "left"), [(2, 2), (7, 2), (8, 1), (11, 1), (12, 0), (14, 0)])
def test_nobody_is_refused_or_ended_for_what_caches_hold(kind: str, wanted: int, left: int) -> None:
    """They are emptied, the largest first, until what is asked for fits; and can be filled again."""
    process, ended, emptied = ProcessBudget(20 * STEP), list[Any](), list[Any]()
    call = invocation(process, ended)
    asking = process.share() if kind == "body" else invocation(process, ended)
    call.grow(6 * STEP if kind != "the call that holds most" else 2 * STEP)
    asking.grow(0 if kind != "the call that holds most" else 4 * STEP)
    caches = [cache(process, emptied) for _ in range(3)]
    for one, held in zip(caches, (3, 4, 6), strict=True):
        one.grow(held * STEP)
    asking.grow(asking.charged + wanted * STEP)
    assert not ended
    assert emptied == [caches[2], caches[1], caches[0]][: 3 - left]
    assert asking.charged >= wanted * STEP
    assert process.held <= 20 * STEP
    emptied.clear()
    asking.close()
    caches[2].grow(6 * STEP)
    asking.grow(14 * STEP)
    assert not ended
    assert caches[2] in emptied


def test_a_cache_ends_no_call() -> None:
    """It is refused, and so is the largest of caches when it grows; a smaller one takes the place of a larger one."""
    process, ended, emptied = ProcessBudget(20 * STEP), list[Any](), list[Any]()
    call, small, large = invocation(process, ended), cache(process, emptied), cache(process, emptied)
    call.grow(12 * STEP)
    with pytest.raises(Overloaded):
        large.grow(9 * STEP)
    large.grow(6 * STEP)
    with pytest.raises(Overloaded):
        large.grow(10 * STEP)
    assert not emptied
    small.grow(4 * STEP)
    assert emptied == [large]
    assert (small.charged, large.charged) == (4 * STEP, 0)
    assert not ended


def test_what_does_not_fit_without_caches_is_treated_as_if_there_were_none() -> None:
    """A body is refused, and the call that holds most ends."""
    process, ended, emptied = ProcessBudget(20 * STEP), list[Any](), list[Any]()
    call, kept, body = invocation(process, ended), cache(process, emptied), process.share()
    call.grow(12 * STEP)
    kept.grow(6 * STEP)
    with pytest.raises(Overloaded):
        body.grow(12 * STEP)
    assert emptied == [kept]
    assert [share for share, _ in ended] == [call]
    assert body.charged == 0


def test_a_cache_that_gives_nothing_back_is_asked_once() -> None:
    """What asks is then refused, and does not ask for ever."""
    process, asked = ProcessBudget(10 * STEP), list[InvocationError]()
    stubborn, body = process.share(is_cache=True), process.share()
    stubborn.end = asked.append
    stubborn.grow(6 * STEP)
    with pytest.raises(Overloaded):
        body.grow(6 * STEP)
    assert len(asked) == 1


def test_a_refusal_keeps_nothing_of_its_caller() -> None:
    """The body of a refused request is freed at once, not when the garbage collector comes round."""

    class Body:
        pass

    def refused() -> weakref.ref[Body]:
        body, share = Body(), ProcessBudget(STEP).share()
        with contextlib.suppress(Overloaded):
            share.grow(2 * STEP)
        return weakref.ref(body)

    gc.disable()
    try:
        assert refused()() is None
    finally:
        gc.enable()


def test_the_invocation_that_holds_most_ends_itself_when_it_grows() -> None:
    """It is refused its frame, and nobody else is touched."""
    process, ended = ProcessBudget(10 * STEP), list[Any]()
    small, large = invocation(process, ended), invocation(process, ended)
    small.grow(4 * STEP)
    large.grow(5 * STEP)
    with pytest.raises(Overloaded):
        large.grow(8 * STEP)
    assert not ended


def test_another_invocation_goes_on_while_the_largest_one_ends() -> None:
    """Reading never pauses for it; as far as a sixteenth beyond the limit, and only one is ended at a time."""
    process, told = ProcessBudget(32 * STEP), list[Any]()
    shares = [process.share() for _ in range(3)]
    for share in shares:
        share.end = told.append
    largest, second, other = shares
    largest.grow(24 * STEP)
    second.grow(6 * STEP)
    other.grow(2 * STEP)
    other.grow(3 * STEP)
    assert len(told) == 1
    assert largest.end is None
    other.grow(4 * STEP)
    assert len(told) == 1
    assert process.held == 34 * STEP
    with pytest.raises(Overloaded):
        other.grow(5 * STEP)
    largest.close()
    other.grow(5 * STEP)
    assert len(told) == 1
    with pytest.raises(Overloaded):
        second.grow(32 * STEP)


def test_a_large_limit_is_passed_by_8_mib() -> None:
    """The largest step of a call is an eighth of 64 MiB."""
    process = ProcessBudget(512 << 20)
    for size in [64 << 20] * 8 + [8 << 20]:
        share = process.share()
        share.end = print
        share.grow(size)
    with pytest.raises(Overloaded):
        share.grow((8 << 20) + 1)


def test_a_fall_is_told_once() -> None:
    """Then the highest point is forgotten."""
    process = ProcessBudget(100 * STEP)
    share = process.share()
    share.grow(40 * STEP)
    assert not process.has_fallen(30 * STEP)
    share.close()
    assert process.has_fallen(30 * STEP)
    assert not process.has_fallen(30 * STEP)


def test_memory_that_one_call_after_another_has_left_is_asked_for() -> None:
    """None of them held much; but only once no more of them come, since the next one would use it again."""
    process = ProcessBudget(100 * STEP)
    for _ in range(4):
        share = process.share()
        share.grow(10 * STEP)
        share.close()
    assert not process.has_fallen(30 * STEP)  # they may still come
    assert process.has_fallen(30 * STEP)
    assert not process.has_fallen(30 * STEP)
    assert not process.has_fallen(30 * STEP)


def test_threads_share_a_budget_under_its_lock() -> None:
    """Nothing is lost, nothing is left, and the limit with its sixteenth is never passed."""
    process = ProcessBudget(64 * STEP, threading.Lock())
    highest = []

    def work() -> None:
        for _ in range(300):
            share = process.share()
            try:
                for held in range(STEP, 20 * STEP, STEP):
                    share.grow(held)
                    highest.append(process.held)
            except Overloaded:
                pass
            finally:
                share.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert process.held == 0
    assert max(highest) <= 68 * STEP


def test_the_unread_bytes_of_an_invocation_are_counted_beyond_a_step() -> None:
    """Below it a frame costs no call; what is read is given back, and all of it when the invocation is over."""
    process = ProcessBudget(100 * STEP)
    budget = Budget(Limits(hard_bytes=50 * STEP), process.share())
    for _ in range(16):
        budget.add(STEP // 16)
    assert process.held == 0
    assert not budget.is_charged
    budget.add(9 * STEP)
    assert process.held >= 10 * STEP
    assert budget.is_charged
    budget.bytes -= 9 * STEP
    budget.shrink()
    assert process.held == 0
    assert not budget.is_charged
    budget.add(9 * STEP)
    budget.close()
    assert process.held == 0


def test_R130_the_hard_cap_of_an_invocation_stands_with_a_share_and_without() -> None:
    """It is looked at before the process is asked (R-130)."""
    process = ProcessBudget(100 * STEP)
    for budget in (Budget(Limits(hard_bytes=3 * STEP), process.share()), Budget(Limits(hard_bytes=3 * STEP))):
        budget.add(3 * STEP)
        held = process.held
        with pytest.raises(LimitExceeded, match="are unread; the limits of an invocation are"):
            budget.add(1)
        assert budget.bytes == 3 * STEP
        assert process.held == held
        budget.close()
    assert process.held == 0


def test_what_an_input_gives_away_is_given_back() -> None:
    """As messages are taken, and at the end of the invocation for those that never were."""
    process = ProcessBudget(100 * STEP)
    budget = Budget(Limits(), process.share())
    stream = InputStream(Decoders(0, StreamSpec("xs", int), builtin(entry_points=False)), budget)
    for _ in range(10):
        stream.feed(Message(bytes(STEP), EMPTY, "application/json"))
    assert process.held >= 10 * STEP
    for _ in range(6):
        assert stream.take() is not None
    assert process.held < 6 * STEP


def test_reading_pauses_at_the_mark_and_goes_on_at_half_of_it() -> None:
    """Each mark alone, and as soon as it is met."""
    limits = Limits(high_frames=4, high_bytes=40, hard_frames=100, hard_bytes=1000)
    for sizes, is_high, is_low in (
        ([1] * 4, True, False), ([1] * 3, False, False), ([1] * 2, False, True),
        ([40], True, False), ([39], False, False), ([20], False, True), ([21], False, False),
    ):  # fmt: skip
        budget = Budget(limits)
        for size in sizes:
            budget.add(size)
        assert (budget.is_high, budget.is_low) == (is_high, is_low), sizes


def test_R130_each_cap_alone_ends_the_invocation() -> None:
    """As much as a cap says is let in; what is refused is not counted."""
    limits = Limits(high_frames=1, high_bytes=1, hard_frames=3, hard_bytes=30)
    for sizes, more in (([1, 1, 1], 1), ([30], 1)):
        budget = Budget(limits)
        for size in sizes:
            budget.add(size)
        with pytest.raises(LimitExceeded, match="the limits of an invocation are 3 frames and 30 bytes"):
            budget.add(more)
        assert (budget.frames, budget.bytes) == (len(sizes), sum(sizes))


def test_of_two_that_hold_as_much_the_one_that_grows_is_refused() -> None:
    """Nobody who does not ask is ended for it."""
    process, ended = ProcessBudget(10 * STEP), list[Any]()
    one, other = invocation(process, ended), invocation(process, ended)
    one.grow(6 * STEP)
    other.grow(4 * STEP)
    with pytest.raises(Overloaded):
        other.grow(6 * STEP)
    assert not ended


def test_what_a_peer_has_not_taken_counts_until_it_has() -> None:
    """Two copies while it is under way, one while only the transport has it."""
    memory = ProcessBudget(100 * STEP_BYTES)
    unread = Unread(memory)
    unread.add(10 * STEP_BYTES, None, copies=2)
    assert memory.held >= 20 * STEP_BYTES
    unread.sent()
    assert 10 * STEP_BYTES <= memory.held < 20 * STEP_BYTES + 1
    unread.part()
    unread.part()
    assert memory.unread == 1
    unread.take()
    unread.take()
    assert (memory.held, memory.unread) == (0, 0)


def test_a_peer_that_takes_nothing_loses_its_call_when_memory_runs_out() -> None:
    """The one for which most is under way; the call itself where it is that one, and what nobody can end stays."""
    memory = ProcessBudget(100 * STEP_BYTES)
    ended: list[str] = []
    first, second, third = Unread(memory), Unread(memory), Unread(memory)
    first.add(60 * STEP_BYTES, lambda _: ended.append("first"))
    second.add(30 * STEP_BYTES, lambda _: ended.append("second"))
    third.add(16 * STEP_BYTES, lambda _: ended.append("third"))
    assert ended == ["first"]
    first.take()
    first.add(70 * STEP_BYTES, lambda _: ended.append("first again"))
    assert ended == ["first", "first again"]
    first.take()
    for one in (second, third):
        one.take()
    assert memory.held == 0
    first.add(200 * STEP_BYTES, None)
    assert memory.held == 0


def test_memory_that_was_short_is_asked_for_again() -> None:
    """What comes takes the place of what goes, so the sum does not fall; yet the C library keeps what went."""
    memory = ProcessBudget(10 * STEP_BYTES)
    assert not memory.has_fallen(STEP_BYTES)
    Unread(memory).add(20 * STEP_BYTES, None)
    assert memory.has_fallen(STEP_BYTES)
    assert not memory.has_fallen(STEP_BYTES)
