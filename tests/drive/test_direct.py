"""Direct conversations: a sync function in the thread of its wire."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from invoker import Context, InputCancelled, Status
from invoker.drive import direct
from invoker.errors import DeadlineExceeded, ProtocolViolation, ShuttingDown, StopInvocation
from tests.drive.wires import Call, direct_driver

LIMIT_S = 5.0


def square(x: int) -> int:
    return x * x


def gen(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield x * x


def sink(xs: Iterator[int]) -> None:
    for _ in xs:
        pass


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(direct, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


# Normal endings.


@pytest.mark.parametrize("function", [square, gen])
def test_every_style_answers_in_order(function):
    """Mapped and streaming: n inputs, n outputs, OK."""
    call = Call(direct_driver(function)).start()
    for number in range(50):
        call.data(b"%d" % number)
    assert call.half_close().end() is None
    assert call.payloads() == [b"%d" % (n * n) for n in range(50)]
    assert call.wire.status == (0, "")
    assert call.wire.is_accepted
    assert call.driver.engine.counters.finished == {Status.OK: 1}


@pytest.mark.parametrize("function", [square, gen])
def test_R032_zero_inputs_give_zero_outputs(function):
    """A start and a half-close: OK."""
    call = Call(direct_driver(function)).start().half_close()
    assert call.end() is None
    assert call.payloads() == []


def test_a_sink_reads_to_the_end():
    """It has no output at all."""
    call = Call(direct_driver(sink)).raw(b"\n\x00").data(b"1").half_close()
    assert call.end() is None
    assert call.payloads() == []


def test_R114_the_function_may_end_before_its_input():
    """The call ends with OK although the caller never half-closes."""

    def first(xs: Iterator[int]) -> Iterator[int]:
        yield next(xs)

    call = Call(direct_driver(first)).start().data(b"1").data(b"2").data(b"3")
    assert call.end() is None
    assert call.payloads() == [b"1"]


def test_R050_a_source_flows_before_any_input():
    """The StartFrame alone starts the function."""

    def greet(xs: Iterator[int]) -> Iterator[int]:
        yield 7
        yield from xs

    call = Call(direct_driver(greet)).start()
    assert call.outputs(1) == [b"7"]
    assert call.data(b"8").half_close().end() is None
    assert call.payloads() == [b"7", b"8"]


# Endings with an error.


def test_R119_a_call_that_raises_before_any_output():
    """It is told from a stream that raises."""

    def broken(xs: Iterator[int]) -> Iterator[int]:
        raise ValueError("boom")

    assert str(Call(direct_driver(broken)).start().end()) == "Invoker: Unexpected Invocation Error: ValueError: boom"


def test_R113_values_before_the_error_are_delivered_before_it():
    """Three values, then the error."""

    def three() -> Iterator[int]:
        yield from (1, 2, 3)
        raise ValueError("boom")

    call = Call(direct_driver(three)).start()
    assert str(call.end()) == "Invoker: Unexpected Error: ValueError: boom"
    assert call.payloads() == [b"1", b"2", b"3"]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
@pytest.mark.parametrize("is_mapped", [False, True])
def test_R123_exit_like_exceptions_fail_the_call_only(error, is_mapped):
    """They become Unexpected Error and never end the thread without a status."""

    def leave(x: int) -> int:
        raise error

    def streaming(xs: Iterator[int]) -> Iterator[int]:
        raise error

    ended = Call(direct_driver(leave if is_mapped else streaming)).start().data(b"1").end()
    assert str(ended).startswith("Invoker: Unexpected")


@pytest.mark.parametrize("is_in_call", [False, True])
def test_R123_a_stop_of_the_functions_own_making_leaks_nothing(is_in_call):
    """Who raises StopInvocation just stops: the call ends, and the engine forgets it."""

    def stop(xs: Iterator[int]) -> Iterator[int]:
        raise StopInvocation("I stop")

    def stop_later(xs: Iterator[int]) -> Iterator[int]:
        yield 1
        raise StopInvocation("I stop")

    assert Call(direct_driver(stop if is_in_call else stop_later)).start().end() is None


def test_R075_earlier_outputs_precede_a_decoding_error():
    """What came before a bad payload is answered; then the call fails at once, without a half-close."""
    call = Call(direct_driver(gen)).start().data(b"2").data(b"x")
    assert str(call.end()).startswith("Invoker: Bad Input Signal")
    assert call.payloads() == [b"4"]


def test_a_decode_error_ends_the_call_although_the_function_swallows_it():
    """Ruling 3: the ending is the invoker's; what the function yields afterwards is dropped."""

    def stubborn(xs: Iterator[int]) -> Iterator[int]:
        while True:
            try:
                yield next(xs)
            except Exception:
                yield -1

    call = Call(direct_driver(stubborn)).start().data(b"x").data(b"1")
    assert str(call.end()).startswith("Invoker: Bad Input Signal")
    assert call.payloads() == []


def test_a_pull_after_a_swallowed_decode_error_raises_what_cannot_be_swallowed():
    """Not ``except Exception``, at least."""
    seen = []

    def stubborn(xs: Iterator[int]) -> Iterator[int]:
        try:
            while True:
                try:
                    next(xs)
                except Exception as error:
                    seen.append(type(error).__name__)
        except InputCancelled as error:
            seen.append(error.error.prefix)
            raise
        yield 1

    assert str(Call(direct_driver(stubborn)).start().data(b"x").end()).startswith("Invoker: Bad Input Signal")
    assert seen == ["DecodeError", "Invoker: Bad Input Signal"]


@pytest.mark.parametrize(
    ("frame", "text"), [(b"\xff\xff\xff", "not an InputSignal"), (b"\n\x00", "a start signal may come only once")]
)
def test_R046_R120_a_protocol_violation_while_the_function_pulls(frame, text):
    """The pull raises it, and it is the ending."""
    seen = []

    def watch(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield from xs
        except InputCancelled as error:
            seen.append(error.error)
            raise

    call = Call(direct_driver(watch)).start().data(b"1")
    call.outputs(1)
    error = call.raw(frame).end()
    assert isinstance(error, ProtocolViolation)
    assert text in str(error)
    assert seen == [error]


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", b"\x12\x00", None])
def test_R045_R048_R120_a_protocol_violation_before_the_start(frame):
    """Nothing runs, nothing is accepted."""
    call = Call(direct_driver(gen))
    if frame is None:
        call.half_close()
    else:
        call.raw(frame)
    assert isinstance(call.end(), ProtocolViolation)
    assert not call.wire.is_accepted


def test_R064_an_index_out_of_range_ends_the_call():
    """There is one input."""
    assert isinstance(Call(direct_driver(gen)).start().data(b"1", index=3).end(), ProtocolViolation)


def test_R025_the_engine_refuses_while_it_drains():
    """The status is the engine's; no body runs."""
    driver = direct_driver(gen)
    driver.engine.is_draining = True
    call = Call(driver).start()
    assert isinstance(call.end(), ShuttingDown)
    assert not call.wire.is_accepted
    assert driver.engine.counters.refused == 1


# The peer goes away.


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


# What is held.


def test_the_first_output_of_a_slow_generator_is_not_held(clock):
    """Nor is any later one, as long as it takes its time."""

    def slow(xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            clock.now_s += 1
            yield x
            clock.now_s += 1

    call = Call(direct_driver(slow)).start().data(b"1").data(b"2").data(b"3").half_close()
    assert call.end() is None
    assert call.holds() == [False, False, False]


def test_outputs_are_held_after_the_generator_came_back_promptly(clock):
    """For one that pulls it is the way to the pull that counts, not how long the pull waits or the value takes."""

    def prompt(xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            clock.now_s += 1
            yield x

    call = Call(direct_driver(prompt)).start().data(b"1").data(b"2").data(b"3").half_close()
    assert call.end() is None
    assert call.holds() == [False, True, True]


def test_a_source_that_falls_behind_is_held_no_more(clock):
    """Prompt, prompt, slow, prompt: the frame after the slow step is not held."""

    def source() -> Iterator[int]:
        for number in range(5):
            clock.now_s += 1 if number == 3 else 0
            yield number

    call = Call(direct_driver(source)).start()
    assert call.end() is None
    assert call.holds() == [False, True, True, False, True]


def test_results_of_a_mapped_function_are_always_held(clock):
    """The next pull is sure to follow."""

    def slow(x: int) -> int:
        clock.now_s += 1
        return x

    call = Call(direct_driver(slow)).start().data(b"1").data(b"2").half_close()
    assert call.end() is None
    assert call.holds() == [True, True]


def test_an_end_is_told_from_a_cancel_with_care_for_streams_only():
    """No code of a mapped function sees the difference (R-109)."""
    for function, settles in ((square, False), (gen, True)):
        call = Call(direct_driver(function)).start().half_close()
        assert call.end() is None
        assert call.wire.settles is settles


# Functions that return something to await.


async def _end(call: Call):
    return await asyncio.to_thread(call.end)


async def test_R034_a_sync_function_may_return_an_awaitable():
    """It is awaited on the loop while the thread waits."""

    def deferred(x: int):
        async def later():
            await asyncio.sleep(0)
            return x + 1

        return later()

    driver = direct_driver(deferred)
    driver.loop = asyncio.get_running_loop()
    call = Call(driver).start().data(b"1").data(b"2").half_close()
    assert await _end(call) is None
    assert call.payloads() == [b"2", b"3"]


def test_R034_without_a_loop_an_awaitable_is_a_clear_error():
    """And no warning of a coroutine that was never awaited."""

    def deferred(x: int):
        async def later():
            return x

        return later()

    error = Call(direct_driver(deferred)).start().data(b"1").end()
    assert "nothing here can await it" in str(error)


@pytest.mark.parametrize("is_call", [False, True])
async def test_R115_a_cancel_while_an_awaitable_is_awaited(is_call):
    """The look of the sweeper cancels it; the ending is a cancel, not an error of the function."""
    inside, cancelled = asyncio.Event(), asyncio.Event()

    async def later():
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    def deferred(x: int):
        return later()

    def streaming(xs: Iterator[int]):
        return later()

    driver = direct_driver(streaming if is_call else deferred)
    driver.loop = asyncio.get_running_loop()
    call = Call(driver).start().data(b"1")
    await inside.wait()
    call.cancel()
    assert call.conversation.sweep(time.monotonic())
    error = await _end(call)
    await cancelled.wait()
    assert error.status is Status.CANCELLED


async def test_a_look_between_the_start_of_an_awaitable_and_its_note_is_not_lost(monkeypatch):
    """The loop may run it, and the peer be gone, before its thread has written down what it waits for."""
    submit = asyncio.run_coroutine_threadsafe

    def submit_slowly(coroutine, loop):
        future = submit(coroutine, loop)
        call.cancel()
        call.conversation.sweep(time.monotonic())
        return future

    def deferred(x: int):
        return asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submit_slowly)
    driver = direct_driver(deferred)
    driver.loop = asyncio.get_running_loop()
    call = Call(driver)
    call.start().data(b"1")
    assert (await _end(call)).status is Status.CANCELLED


# What the sweeper does.


def _deaf(inside: threading.Event, go: threading.Event):
    def deaf(xs: Iterator[int]) -> Iterator[int]:
        next(xs)
        inside.set()
        go.wait(LIMIT_S)
        yield 1

    return deaf


def test_R116_a_deaf_thread_is_counted_until_it_leaves(caplog):
    """From the grace after the cancel on, once; its late output is dropped."""
    inside, go = threading.Event(), threading.Event()
    call = Call(direct_driver(_deaf(inside, go), grace_s=5.0)).start().data(b"1")
    assert inside.wait(LIMIT_S)
    threads, sweep = call.driver.threads, call.conversation.sweep
    assert sweep(100.0)
    assert sweep(200.0)  # not gone yet
    call.cancel()
    assert sweep(300.0)
    assert sweep(304.0)
    assert threads.stuck == 0
    assert sweep(306.0)
    assert sweep(307.0)
    assert threads.stuck == 1
    assert caplog.text.count("its thread is abandoned") == 1
    go.set()
    assert call.end().status is Status.CANCELLED
    assert threads.stuck == 0
    assert call.payloads() == []
    assert not sweep(308.0)


def test_a_thread_that_leaves_within_the_grace_is_never_counted(caplog):
    """Nor does a later look find it."""
    inside, go = threading.Event(), threading.Event()
    call = Call(direct_driver(_deaf(inside, go), grace_s=5.0)).start().data(b"1")
    assert inside.wait(LIMIT_S)
    call.cancel()
    assert call.conversation.sweep(300.0)
    go.set()
    assert call.end().status is Status.CANCELLED
    assert not call.conversation.sweep(400.0)
    assert call.driver.threads.stuck == 0
    assert "abandoned" not in caplog.text


def test_R134_a_call_that_outlives_its_inputs_is_logged_once(caplog):
    """From the lingering time on, even while the thread is in user code."""
    inside, go = threading.Event(), threading.Event()

    def hang(xs: Iterator[int]) -> Iterator[int]:
        for _ in xs:
            pass
        inside.set()
        go.wait(LIMIT_S)
        yield 1

    call = Call(direct_driver(hang, lingering_s=60.0)).start().half_close()
    assert inside.wait(LIMIT_S)
    now = time.monotonic()
    call.conversation.sweep(now + 59)
    assert "goes on although" not in caplog.text
    call.conversation.sweep(now + 61)
    call.conversation.sweep(now + 62)
    go.set()
    assert call.end() is None
    (record,) = [one for one in caplog.records if "goes on although its inputs ended 60 s ago" in one.getMessage()]
    assert record.levelno == logging.WARNING
    assert record.function == "hang"


def test_a_look_at_a_thread_that_waits_for_its_peer_takes_nothing_from_it():
    """It sees for itself what comes."""
    call = Call(direct_driver(gen)).start()
    call.await_pull()
    assert call.conversation.sweep(time.monotonic())
    assert call.data(b"2").half_close().end() is None
    assert call.payloads() == [b"4"]


# What user code does in the end.


@pytest.mark.parametrize("cause", ["decode", "violation", "raise"])
def test_R075_an_error_is_told_at_once_although_user_code_stays(cause):
    """The peer need not wait for a function that cleans up for long, or swallows the error and works on."""
    inside, go = threading.Event(), threading.Event()

    def stay(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield from xs
            raise ValueError("boom")
        except (Exception, InputCancelled):
            inside.set()
            go.wait(LIMIT_S)
            yield -1

    def clean_up(xs: Iterator[int]) -> Iterator[object]:
        try:
            yield object()
        finally:
            inside.set()
            go.wait(LIMIT_S)

    call = Call(direct_driver(clean_up if cause == "raise" else stay, grace_s=5.0)).start().data(b"1")
    if cause != "raise":
        call.outputs(1)
        call.raw(b"\xff\xff\xff") if cause == "violation" else call.data(b"x")
    assert inside.wait(LIMIT_S)
    told, running = call.wire.status, dict(call.driver.engine.running)
    call.conversation.sweep(300.0)
    call.conversation.sweep(306.0)
    stuck = call.driver.threads.stuck
    go.set()
    error = call.end()
    assert told == (int(error.status), str(error))
    assert not running
    assert stuck == 1
    assert call.driver.threads.stuck == 0


def test_a_generator_that_raises_while_it_is_closed_is_logged(caplog):
    """The ending stays what it was."""

    def messy() -> Iterator[object]:
        try:
            yield object()
        finally:
            raise ValueError("in finally")

    error = Call(direct_driver(messy)).start().end()
    assert error.status is not Status.OK
    assert "a function raised while it was closed: ValueError('in finally')" in caplog.text


def test_R127_a_slow_reader_suspends_the_function():
    """One frame is under way, one waits; a cancel sets the function free."""
    made = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    call = Call(direct_driver(numbers), is_slow=True).start()
    call.outputs(1)
    call.wire.take()
    call.outputs(2)
    call.await_pull()
    assert len(made) == 3
    assert call.cancel().end().status is Status.CANCELLED
    assert len(made) == 3
