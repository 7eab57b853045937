"""Several outputs of one direct conversation."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from invoker import InputCancelled, Status
from invoker.errors import LimitExceeded, ProtocolViolation, ShuttingDown
from tests.execution.wires import Call, direct_driver

LIMIT_S = 5.0
JSON = "application/json"

Pair = tuple[Iterator[int], Iterator[int]]


def each(xs: Iterator[int], ys: Iterator[int]) -> Pair:
    return (x * 10 for x in xs), (y * 100 for y in ys)


def crossed(xs: Iterator[int], ys: Iterator[int]) -> Pair:
    return (y for y in ys), (x for x in xs)


def halves(xs: Iterator[int]) -> Pair:
    kept = list(xs)
    return iter(kept), iter(kept)


class Late:
    """The call of a function that refers to it; in a cell that is empty it could not be looked at."""

    call: Call


def start(function, *, late: Late | None = None, outputs: int = 2, deadline: float | None = None, **settings) -> Call:
    call = Call(direct_driver(function, **settings), deadline=deadline)
    if late is not None:
        late.call = call
    return call.start(*[JSON] * outputs)


def start_slowly(function) -> Call:
    return Call(direct_driver(function), is_slow=True).start(JSON, JSON)


def test_every_output_gets_its_values_in_order():
    """Two inputs, two outputs, OK."""
    call = start(each)
    for number in range(20):
        call.data(b"%d" % number, 0).data(b"%d" % number, 1)
    assert call.half_close().end() is None
    assert call.payloads(0) == [b"%d" % (10 * n) for n in range(20)]
    assert call.payloads(1) == [b"%d" % (100 * n) for n in range(20)]
    assert call.wire.status == (0, "")
    assert call.driver.threads.busy == 0


def test_inputs_may_be_read_before_the_outputs_exist():
    """The call itself pulls, in the thread that serves the wire."""
    call = start(halves).data(b"1").data(b"2").half_close()
    assert call.end() is None
    assert call.payloads(0) == call.payloads(1) == [b"1", b"2"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_R129_each_output_reads_its_own_input(order):
    """One of them goes on while the other one waits for an input that is empty."""
    first, second = order
    call = start(crossed)
    for number in range(50):
        call.data(b"%d" % number, first)
    call.outputs(50)
    assert call.payloads(1 - first) == [b"%d" % n for n in range(50)]
    call.data(b"7", second).half_close()
    assert call.end() is None
    assert call.payloads(1 - second) == [b"7"]


def test_R114_outputs_may_end_before_their_inputs():
    """The call ends with OK although the caller never half-closes."""

    def firsts(xs: Iterator[int]) -> Pair:
        return iter([next(xs)]), iter([2])

    call = start(firsts).data(b"1")
    assert call.end() is None
    assert sorted(call.payloads()) == [b"1", b"2"]


@pytest.mark.parametrize("failing", [0, 1])
def test_R112_one_output_fails_while_another_one_pulls(failing):
    """The pull wakes with the error, which the peer is told at once."""
    late = Late()
    seen = []

    def both(xs: Iterator[int]) -> Pair:
        def pulling():
            try:
                yield from xs
            except InputCancelled as error:
                seen.append(str(error))
                raise

        def broken():
            assert late.call.wire.waiting.wait(LIMIT_S)
            raise ValueError("boom")
            yield 1

        outputs = pulling(), broken()
        return outputs if failing == 1 else outputs[::-1]

    call = start(both, late=late)
    assert str(call.end()) == "Invoker: Unexpected Error: ValueError: boom"
    assert seen == ["Invoker: Unexpected Error: ValueError: boom"]
    assert call.wire.status == (2, seen[0])


def test_R112_one_output_fails_while_two_others_pull():
    """One of those polls, the other one sleeps until it has news; both wake."""
    late = Late()
    woken = threading.Semaphore(0)

    def three(xs: Iterator[int], ys: Iterator[int]) -> tuple[Iterator[int], Iterator[int], Iterator[int]]:
        def pulling(values: Iterator[int], number: int):
            try:
                yield number
                yield from values
            except InputCancelled:
                woken.release()
                raise

        def broken():
            late.call.outputs(2)
            assert late.call.wire.waiting.wait(LIMIT_S)
            raise ValueError("boom")
            yield 1

        return pulling(xs, 1), pulling(ys, 2), broken()

    call = start(three, late=late, outputs=3)
    assert "boom" in str(call.end())
    assert woken.acquire(blocking=False)
    assert woken.acquire(blocking=False)


def test_R112_one_output_fails_while_another_one_is_endless():
    """That one is closed."""
    late = Late()
    closed = threading.Event()

    def both() -> Pair:
        def endless():
            try:
                yield from itertools.count()
            finally:
                closed.set()

        def broken():
            late.call.outputs(3)
            raise ValueError("boom")
            yield 1

        return endless(), broken()

    call = start(both, late=late)
    assert "boom" in str(call.end())
    assert closed.is_set()


def test_R112_an_error_is_told_at_once_although_another_output_is_deaf():
    """Its thread is counted as stuck until it leaves, and what it yields then is dropped."""
    inside, go = threading.Event(), threading.Event()

    def both() -> Pair:
        def deaf():
            inside.set()
            go.wait(LIMIT_S)
            yield 1

        def broken():
            inside.wait(LIMIT_S)
            raise ValueError("boom")
            yield 1

        return deaf(), broken()

    call = start(both, grace_s=5.0)
    assert call.wire.told.wait(LIMIT_S)
    call.conversation.sweep(300.0)
    call.conversation.sweep(306.0)
    stuck, running = call.driver.threads.stuck, dict(call.driver.engine.running)
    go.set()
    assert "boom" in str(call.end())
    assert (stuck, running) == (1, {})
    assert call.driver.threads.stuck == 0
    assert call.payloads() == []


def test_R131_an_endless_output_does_not_starve_another_one():
    """The slow one's value comes while the fast one goes on."""
    late = Late()
    is_there = threading.Event()

    def both() -> Pair:
        def endless():
            for number in itertools.count():
                if is_there.is_set():
                    return
                yield number

        def once():
            late.call.outputs(100)
            yield -1
            is_there.set()

        return endless(), once()

    call = start(both, late=late)
    assert call.end() is None
    assert call.payloads(1) == [b"-1"]


def test_R131_a_slow_reader_gets_some_of_each():
    """Both outputs wait for the same room, and both get it."""

    def both() -> Pair:
        return iter(range(30)), iter(range(30))

    call = start_slowly(both)
    for number in range(1, 60):
        call.outputs(number)
        call.wire.take()
    call.outputs(60)
    call.wire.take()
    assert call.end() is None
    assert call.payloads(0) == call.payloads(1) == [b"%d" % n for n in range(30)]


def test_R127_a_cancel_frees_outputs_that_wait_for_room():
    """Nobody reads; then the peer goes away."""

    def both() -> Pair:
        return itertools.count(), itertools.count()

    call = start_slowly(both)
    call.outputs(1)
    call.await_pull()
    assert call.cancel().end().status is Status.CANCELLED
    assert len(call.wire.sent) == 1


@pytest.mark.parametrize("bad", [b"\xff\xff\xff", b"\n\x00"])
def test_R046_R120_a_protocol_violation_while_outputs_pull(bad):
    """All of them wake with it."""
    call = start(each).data(b"1", 0).data(b"1", 1)
    call.outputs(2)
    error = call.raw(bad).end()
    assert isinstance(error, ProtocolViolation)
    assert call.wire.status == (int(error.status), str(error))


def test_R064_an_index_out_of_range_while_outputs_pull():
    """There are two inputs."""
    assert isinstance(start(each).data(b"1", 2).end(), ProtocolViolation)


def test_a_decode_error_ends_the_call_although_the_function_swallows_it():
    """Ruling 3 holds here too; the other output wakes."""

    def stubborn(xs: Iterator[int], ys: Iterator[int]) -> Pair:
        def swallow():
            while True:
                try:
                    yield next(xs)
                except Exception:
                    yield -1

        return swallow(), (y for y in ys)

    call = start(stubborn).data(b"x", 0)
    assert str(call.end()).startswith("Invoker: Bad Input Signal")
    assert call.payloads() == []


@pytest.mark.parametrize(("left_s", "status"), [(-1.0, Status.DEADLINE_EXCEEDED), (60.0, Status.CANCELLED)])
def test_R110_R115_R124_a_cancel_or_a_deadline_while_outputs_pull(left_s, status):
    """Every pull raises what it was."""
    seen = []

    def watching(xs: Iterator[int], ys: Iterator[int]) -> Pair:
        def watch(values: Iterator[int]):
            try:
                yield 0
                yield from values
            except InputCancelled as error:
                seen.append(error.error.status)
                raise

        return watch(xs), watch(ys)

    call = start(watching, deadline=time.monotonic() + left_s)
    call.outputs(2)
    call.await_pull()
    assert call.cancel().end().status is status
    assert seen == [status, status]


def test_R115_a_cancel_while_all_outputs_are_in_user_code():
    """The next emit of each is its last."""
    inside, go, left = threading.Semaphore(0), threading.Event(), []

    def both() -> Pair:
        def busy(number: int):
            try:
                inside.release()
                go.wait(LIMIT_S)
                yield number
                yield number
            finally:
                left.append(number)

        return busy(1), busy(2)

    call = start(both)
    assert inside.acquire(timeout=LIMIT_S)
    assert inside.acquire(timeout=LIMIT_S)
    call.cancel()
    assert call.wire.look()
    go.set()
    assert call.end().status is Status.CANCELLED
    assert call.payloads() == []
    assert sorted(left) == [1, 2]


def test_R025_a_call_that_the_drain_cuts():
    """While its outputs pull."""
    call = start(each).data(b"1", 0).data(b"1", 1)
    call.outputs(2)
    error = ShuttingDown("cut")
    call.conversation.fail(error)
    assert call.end() is error


def test_no_thread_left_for_an_output_is_an_ending():
    """Those that have one are stopped, all are closed."""
    closed = []

    def three(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int], Iterator[int]]:
        def watch(number: int):
            try:
                yield from xs
            finally:
                closed.append(number)

        return watch(0), watch(1), watch(2)

    call = start(three, outputs=3, threads=1)
    assert isinstance(call.end(), LimitExceeded)
    assert call.driver.threads.busy == 0
    assert sorted(closed) == [0, 1]


def test_values_of_both_outputs_meet_on_one_wire():
    """Each arrives whole and once."""
    count = 200

    def both() -> Pair:
        return iter(range(count)), iter(range(count))

    call = start(both)
    assert call.end() is None
    assert call.payloads(0) == call.payloads(1) == [b"%d" % n for n in range(count)]
