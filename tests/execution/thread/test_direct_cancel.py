"""Direct conversations: cancels, deadlines and cuts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from invoker import Context, InputCancelled, Status
from invoker.errors import DeadlineExceeded, ShuttingDown
from tests.execution.wires import LIMIT_S, Call, direct_driver, gen, square


def test_R110_R115_a_cancel_while_the_function_pulls():
    """The read wakes with InputCancelled, and ``finally`` runs."""
    seen = []

    def watch(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield from xs
        except InputCancelled as error:
            seen.append(error.error.status)
            raise
        finally:
            seen.append("left")

    call = Call(direct_driver(watch)).start().data(b"1")
    call.outputs(1)
    call.await_pull()
    assert call.cancel().end().status is Status.CANCELLED
    assert seen == [Status.CANCELLED, "left"]
    assert call.driver.engine.counters.finished == {Status.CANCELLED: 1}


def test_a_cancel_that_the_function_takes_for_an_end():
    """It swallows what its pull raised and goes on: its output is dropped, and the ending stays."""

    def deaf(xs: Iterator[int]) -> Iterator[int]:
        try:
            next(xs)
        except InputCancelled:
            yield 1

    call = Call(direct_driver(deaf)).start()
    call.await_pull()
    assert call.cancel().end().status is Status.CANCELLED
    assert call.payloads() == []


def test_R115_a_function_that_returns_since_its_caller_is_gone_was_cancelled():
    """It asks its context, and leaves politely: the invocation did not end well."""
    inside, go = threading.Event(), threading.Event()

    def polite(context: Context) -> Iterator[int]:
        yield 1
        inside.set()
        assert go.wait(LIMIT_S)
        if context.cancelled:
            return
        yield 2

    call = Call(direct_driver(polite)).start()
    assert inside.wait(LIMIT_S)
    call.cancel()
    go.set()
    assert call.end().status is Status.CANCELLED
    assert call.driver.engine.counters.finished == {Status.CANCELLED: 1}


def test_R115_a_cancel_while_user_code_runs():
    """The context tells it at once, and the next emit closes the generator."""
    inside, go, seen = threading.Event(), threading.Event(), []

    def busy(context: Context) -> Iterator[int]:
        try:
            yield 1
            seen.append(context.cancelled)
            inside.set()
            go.wait(LIMIT_S)
            seen.append(context.cancelled)
            yield 2
            seen.append("went on")
        finally:
            seen.append("left")

    call = Call(direct_driver(busy)).start()
    assert inside.wait(LIMIT_S)
    call.cancel()
    go.set()
    assert call.end().status is Status.CANCELLED
    assert seen == [False, True, "left"]
    assert call.payloads() == [b"1"]


def test_a_context_that_outlives_its_invocation_says_that_it_is_over():
    """Nothing of the call is kept alive for it."""
    kept = []

    def keep(context: Context) -> Iterator[int]:
        kept.append(context)
        yield 1

    assert Call(direct_driver(keep)).start().end() is None
    assert kept[0].cancelled


@pytest.mark.parametrize(
    ("left_s", "status"), [(-1.0, Status.DEADLINE_EXCEEDED), (0.0, Status.DEADLINE_EXCEEDED), (60.0, Status.CANCELLED)]
)
@pytest.mark.parametrize("is_started", [False, True])
def test_R124_a_deadline_is_told_from_a_cancel(left_s, status, is_started):
    """By the clock, before an invocation runs and while it does."""
    call = Call(direct_driver(gen), deadline=time.monotonic() + left_s)
    if is_started:
        call.start().data(b"1").outputs(1)
    call.cancel()
    error = call.end()
    assert error.status is status
    assert isinstance(error, DeadlineExceeded) is (status is Status.DEADLINE_EXCEEDED)


@pytest.mark.parametrize("is_busy", [False, True])
def test_R025_a_call_that_the_drain_cuts(is_busy):
    """It is neither a cancel nor a deadline, whether the function pulls or works."""
    inside, go = threading.Event(), threading.Event()

    def work(xs: Iterator[int]) -> Iterator[int]:
        inside.set()
        if is_busy:
            go.wait(LIMIT_S)
            yield 1
        yield from xs

    call = Call(direct_driver(work), deadline=time.monotonic()).start()
    assert inside.wait(LIMIT_S)
    error = ShuttingDown("cut")
    call.conversation.fail(error)
    go.set()
    assert call.end() is error
    assert call.wire.status == (int(error.status), str(error))


def test_R025_a_call_that_is_cut_before_it_has_started():
    """Nothing came yet."""
    call, error = Call(direct_driver(gen)), ShuttingDown("cut")
    call.await_pull()
    call.conversation.fail(error)
    assert call.end() is error


def test_an_end_is_told_from_a_cancel_with_care_for_streams_only():
    """No code of a mapped function sees the difference (R-109)."""
    for function, settles in ((square, False), (gen, True)):
        call = Call(direct_driver(function)).start().half_close()
        assert call.end() is None
        assert call.wire.settles is settles


# Functions that return something to await.
