"""Reactors: violations, cancels, cuts, errors, slow readers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker import Context, InputCancelled, Status
from invoker.core.steps import Emitted, Finished
from invoker.errors import InternalError, InvocationError, LimitExceeded, ProtocolViolation, ShuttingDown
from invoker.protocols.riff.session import RiffSession
from tests.execution.loopcalls import JSON, FakeCall, agen, gen, until
from tests.execution.memory import driver_of


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", b"\n\x00"])
@pytest.mark.parametrize("function", [agen, gen])
async def test_R046_R120_a_protocol_violation_while_a_function_runs(function, frame):
    """It ends the call, and the body leaves."""
    peer = FakeCall(driver_of(function)).start().raw(frame)
    assert isinstance(await peer.end(), ProtocolViolation)


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", b"\x12\x00", None])
async def test_R045_R048_R120_a_protocol_violation_before_the_start(frame):
    """Nothing runs, nothing is accepted."""
    peer = FakeCall(driver_of(agen)).raw(frame)
    assert isinstance(await peer.end(), ProtocolViolation)
    assert not peer.is_accepted


async def test_R025_the_engine_refuses_while_it_drains():
    """The status is the engine's."""
    driver = driver_of(agen)
    driver.engine.is_draining = True
    peer = FakeCall(driver).start()
    assert isinstance(await peer.end(), ShuttingDown)
    assert not peer.is_accepted


async def test_no_thread_for_a_sync_function_is_an_ending():
    """The pool is full; the invocation was admitted, and is closed again."""
    driver = driver_of(gen, threads=1)
    driver.threads.enter()
    assert isinstance(await FakeCall(driver).start().end(), LimitExceeded)
    driver.threads.leave()


async def test_a_session_that_fails_is_our_error(caplog):
    """The peer learns no detail, the log does."""

    class Broken(RiffSession):
        def receive(self, frame):
            raise RuntimeError("secret")

    error = await FakeCall(driver_of(agen), session=Broken()).start().end()
    assert isinstance(error, InternalError)
    assert "secret" not in str(error)
    assert "secret" in caplog.text


@pytest.mark.parametrize("event", [Emitted, Finished])
@pytest.mark.parametrize("function", [agen, gen])
async def test_a_session_that_fails_at_what_a_function_does_is_our_error(function, event, caplog):
    """The call ends, whichever thread or task says so; nobody waits for its deadline, and the function leaves."""

    class Broken(RiffSession):
        def deliver(self, one):
            if isinstance(one, event):
                raise RuntimeError("secret")
            return super().deliver(one)

    driver = driver_of(function)
    peer = FakeCall(driver, session=Broken()).start().data(b"1").half_close()
    error = await peer.end()
    assert isinstance(error, InternalError | InvocationError)
    assert "secret" not in str(error)
    assert "secret" in caplog.text
    assert await driver.left(5)


@pytest.mark.parametrize(("left_s", "status"), [(None, "CANCELLED"), (60.0, "CANCELLED"), (-1.0, "DEADLINE_EXCEEDED")])
async def test_R110_R115_R124_a_cancel_or_a_deadline_while_a_function_pulls(left_s, status):
    """The read wakes with InputCancelled, and ``finally`` runs."""
    seen, pulls = [], asyncio.Event()

    async def watch(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        try:
            pulls.set()
            async for x in xs:
                yield x
        except InputCancelled as error:
            seen.append(error.error.status.name)
            raise
        finally:
            seen.append("left")

    peer = FakeCall(driver_of(watch), deadline=None if left_s is None else time.monotonic() + left_s).start()
    await pulls.wait()
    peer.go()
    assert (await peer.end()).status is Status[status]
    assert seen == [status, "left"]
    peer.reactor.gone()  # once more is harmless


async def test_R115_a_cancel_while_user_code_waits_elsewhere():
    """It is cancelled there, and the context tells it."""
    inside, seen = asyncio.Event(), []

    async def busy(context: Context) -> AsyncIterator[int]:
        try:
            seen.append(context.cancelled)
            inside.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            seen.append(context.cancelled)

    peer = FakeCall(driver_of(busy)).start()
    await inside.wait()
    peer.go()
    assert (await peer.end()).status is Status.CANCELLED
    assert seen == [False, True]
    assert peer.got == []


async def test_R115_a_cancel_while_a_sync_function_works():
    """Its next emit is its last."""
    inside, go, left = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def busy() -> Iterator[int]:
        try:
            loop.call_soon_threadsafe(inside.set)
            go.wait(5)
            yield 1
            left.append("went on")
        finally:
            left.append("left")

    peer = FakeCall(driver_of(busy)).start()
    await inside.wait()
    peer.go()
    go.set()
    assert (await peer.end()).status is Status.CANCELLED
    assert left == ["left"]
    assert peer.got == []


async def test_an_emit_after_the_end_raises_what_except_exception_cannot_eat():
    """A body that swallows its cancel and goes on is stopped at its next emit."""
    inside, seen = asyncio.Event(), []

    async def stubborn() -> AsyncIterator[int]:
        try:
            inside.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
        try:
            yield 1
        except Exception:
            seen.append("eaten")

    peer = FakeCall(driver_of(stubborn)).start()
    await inside.wait()
    (runner,) = peer.reactor.runners.values()
    peer.go()
    assert (await peer.end()).status is Status.CANCELLED
    assert seen == ["cancelled"]
    assert peer.got == []
    message = runner.invocation.outputs[0].encode(1)
    with pytest.raises(BaseException, match="the invocation is over") as raised:
        peer.reactor.emitted(runner.invocation, 0, message)
    assert not isinstance(raised.value, Exception)
    peer.reactor.finished(runner.invocation, ProtocolViolation("late"))  # the first ending stays
    assert runner.invocation.error.status is Status.CANCELLED


@pytest.mark.parametrize("function", [agen, gen])
async def test_R025_a_call_that_the_drain_cuts(function):
    """The drain's patience is over."""
    driver = driver_of(function)
    peer = FakeCall(driver).start().data(b"2")
    await until(lambda: peer.got)
    assert not await driver.drain(0.0)
    assert isinstance(await peer.end(), ShuttingDown)


async def test_R127_a_slow_reader_suspends_the_function():
    """It goes on when there is room; meanwhile it can be seen that it waits."""
    made = []

    async def numbers() -> AsyncIterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    driver = driver_of(numbers)
    peer = FakeCall(driver)
    peer.is_full = True
    peer.start()
    await peer.waits.wait()
    (invocation,) = driver.engine.running.values()
    for _ in range(10):
        await asyncio.sleep(0)
    assert (made, invocation.blocked) == ([0], 1)
    peer.take()
    assert await peer.end() is None
    assert (len(peer.got), invocation.blocked) == (10, 0)


async def test_R127_a_cancel_frees_a_function_that_waits_for_room():
    """The peer that did not read is gone."""

    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    driver = driver_of(numbers)
    peer = FakeCall(driver)
    peer.is_full = True
    peer.start()
    await peer.waits.wait()
    (invocation,) = driver.engine.running.values()
    peer.go()
    assert (await peer.end()).status is Status.CANCELLED
    assert peer.payloads() == [b"1"]
    await until(lambda: invocation.blocked == 0)


async def test_R131_a_body_that_never_waits_lets_others_have_turns():
    """Neither another call nor the loop's own timers starve."""

    async def endless() -> AsyncIterator[int]:
        while True:
            yield 0

    driver = driver_of(endless)
    peer, other = FakeCall(driver).start(), FakeCall(driver).start()
    await until(lambda: peer.got and other.got)
    had = len(peer.got)
    await asyncio.sleep(0)
    assert len(peer.got) - had <= 64
    peer.go()
    other.go()
    await peer.end()
    await other.end()


async def test_R112_an_error_on_one_output_ends_the_call_at_once():
    """Although the other one pulls."""
    seen = []

    async def both(xs: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
        async def pulling():
            try:
                async for x in xs:
                    yield x
            except InputCancelled as error:
                seen.append(str(error))
                raise

        async def broken():
            yield 1
            raise ValueError("boom")

        return pulling(), broken()

    peer = FakeCall(driver_of(both)).start(JSON, JSON)
    assert str(await peer.end()) == "Invoker: Unexpected Error: ValueError: boom"
    assert seen == ["Invoker: Unexpected Error: ValueError: boom"]
    assert peer.payloads(1) == [b"1"]


async def test_R134_a_call_that_outlives_its_inputs_is_logged(caplog):
    """And a call that does not, is not."""
    go = asyncio.Event()

    async def hang(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        await go.wait()
        yield 1

    driver = driver_of(hang, lingering_s=0.01)
    peer = FakeCall(driver).start().half_close()
    await until(lambda: "goes on although its inputs ended" in caplog.text)
    go.set()
    assert await peer.end() is None
    assert caplog.text.count("goes on although") == 1
