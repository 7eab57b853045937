"""Direct conversations: awaitables, and what others see while user code is busy."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator

import pytest

from invoker import InputCancelled, Status
from invoker.core.steps import Close
from invoker.protocols.riff.session import RiffSession
from tests.execution.wires import LIMIT_S, Call, direct_driver, gen


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


async def test_R115_a_cancel_before_anything_is_awaited():
    """The sweeper has looked, and found nobody waiting; who waits after that is not left alone with it."""

    def deferred(x: int):
        call.cancel()
        call.conversation.sweep(time.monotonic())
        return asyncio.Event().wait()

    driver = direct_driver(deferred)
    driver.loop = asyncio.get_running_loop()
    call = Call(driver)
    call.start().data(b"1")
    assert (await _end(call)).status is Status.CANCELLED


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


class Trailing(RiffSession):
    """Riff, whose status has trailing metadata."""

    def deliver(self, event):
        return [Close(step.error, (("a", "b"),)) if type(step) is Close else step for step in super().deliver(event)]


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("raises", [True, False])
def test_trailers_go_with_the_status(raises, outputs):
    """Also with one that is sent at once because the function failed, before the session's `Close` is looked at."""

    def work(xs: Iterator[int]) -> Iterator[int]:
        yield from xs
        if raises:
            raise ValueError("boom")

    def twice(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
        return work(xs), iter(())

    driver = direct_driver(work if outputs == 1 else twice)
    call = Call(driver, session=Trailing()).start(*["*/*"] * outputs).half_close()
    assert (call.end() is not None) is raises
    assert call.wire.trailers == (("a", "b"),)


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
