"""Reactors: what a caller of riff gets, by a real session, driver and loop over a call in memory."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker import InputCancelled, Status, StatusError
from invoker.errors import ProtocolViolation
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of


def square(x: int) -> int:
    return x * x


async def square_async(x: int) -> int:
    return x * x


def gen(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield x * x


async def agen(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x * x


@pytest.mark.parametrize("function", [square, square_async, gen, agen])
async def test_every_style_answers_in_order(function):
    """Sync and async, mapped and streaming: n inputs, n outputs, OK."""
    peer = FakeCall(driver_of(function)).start()
    for number in range(50):
        peer.data(b"%d" % number)
    assert await peer.half_close().end() is None
    assert peer.payloads() == [b"%d" % (n * n) for n in range(50)]
    assert not peer.driver.engine.running


@pytest.mark.parametrize("function", [square, square_async])
async def test_R032_zero_inputs_give_zero_outputs(function):
    """A start and a half-close: OK, and the function is not called."""
    peer = FakeCall(driver_of(function)).start().half_close()
    assert await peer.end() is None
    assert peer.got == []


async def test_R050_a_source_flows_before_any_input():
    """The StartFrame alone starts the function; the call is still open on the caller's side."""

    def greet(names: Iterator[str]) -> Iterator[str]:
        yield "hello"
        yield from names

    peer = FakeCall(driver_of(greet)).start("text/plain")
    assert await peer.outputs(1) == [b"hello"]
    assert await peer.data(b"x", media_type="text/plain").half_close().end() is None
    assert peer.payloads() == [b"hello", b"x"]


async def test_R051_R133_nothing_is_sent_before_the_start_frame():
    """Neither headers nor outputs leave before it; headers leave as soon as it is accepted."""

    def one() -> Iterator[int]:
        yield 1

    peer = FakeCall(driver_of(one))
    await asyncio.sleep(0.05)
    assert not peer.is_accepted
    assert not peer.got
    assert await peer.start().end() is None
    assert peer.is_accepted
    assert peer.payloads() == [b"1"]


@pytest.mark.parametrize("function", [gen, agen])
async def test_R075_earlier_outputs_precede_a_decoding_error(function):
    """What came before a bad payload is answered; then the call fails at once, without a half-close."""
    peer = FakeCall(driver_of(function)).start().data(b"2").data(b"x")
    error = await peer.end()
    assert str(error).startswith("Invoker: Bad Input Signal")
    assert peer.payloads() == [b"4"]


async def test_a_decode_error_ends_the_call_although_the_function_swallows_it():
    """Ruling 3: the ending is the invoker's, not the function's."""

    def stubborn(xs: Iterator[int]) -> Iterator[int]:
        while True:
            try:
                yield next(xs)
            except Exception:
                yield -1

    error = await FakeCall(driver_of(stubborn)).start().data(b"x").end()
    assert str(error).startswith("Invoker: Bad Input Signal")


async def test_R110_R115_a_peer_that_is_gone_reaches_every_style():
    """Blocked reads wake with InputCancelled, and ``finally`` runs."""
    seen: list[str] = []
    left = threading.Semaphore(0)

    def sync(xs: Iterator[int]) -> Iterator[int]:
        try:
            yield from xs
        except InputCancelled as error:
            seen.append(error.error.status.name)
            raise
        finally:
            left.release()

    async def asynchronous(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        try:
            async for x in xs:
                yield x
        except InputCancelled as error:
            seen.append(error.error.status.name)
            raise
        finally:
            left.release()

    for function in (sync, asynchronous):
        driver = driver_of(function)
        peer = FakeCall(driver).start().data(b"1")
        await peer.outputs(1)
        peer.go()
        error = await peer.end()
        assert error.status is Status.CANCELLED
        assert await asyncio.to_thread(left.acquire, timeout=5)
        assert await driver.left(5)
    assert seen == ["CANCELLED", "CANCELLED"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_R112_an_error_on_one_output_ends_the_call_at_once(is_async):
    """Although the other output is endless; that one is closed."""
    closed = threading.Event()

    def endless():
        try:
            yield from itertools.count()
        finally:
            closed.set()

    def failing():
        yield 1
        raise ValueError("boom")

    def both(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
        return endless(), failing()

    async def aendless():
        try:
            while True:
                yield 0
                await asyncio.sleep(0)
        finally:
            closed.set()

    async def afailing():
        yield 1
        raise ValueError("boom")

    async def aboth(xs: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
        return aendless(), afailing()

    driver = driver_of(aboth if is_async else both)
    error = await FakeCall(driver).start("application/json", "application/json").end()
    assert str(error) == "Invoker: Unexpected Error: ValueError: boom"
    assert await asyncio.to_thread(closed.wait, 5)
    assert await driver.left(5)


@pytest.mark.parametrize("is_async", [False, True])
async def test_R113_values_before_the_error_are_delivered_before_it(is_async):
    """Three values, then the error."""

    def three() -> Iterator[int]:
        yield from (1, 2, 3)
        raise ValueError("boom")

    async def athree() -> AsyncIterator[int]:
        for value in (1, 2, 3):
            yield value
        raise ValueError("boom")

    peer = FakeCall(driver_of(athree if is_async else three)).start()
    assert str(await peer.end()) == "Invoker: Unexpected Error: ValueError: boom"
    assert peer.payloads() == [b"1", b"2", b"3"]


@pytest.mark.parametrize("function", [gen, agen])
async def test_R114_the_function_may_end_before_its_input(function):
    """The call ends with OK although the caller never half-closes."""

    def first(xs: Iterator[int]) -> Iterator[int]:
        yield next(xs)

    async def afirst(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in xs:
            yield x
            return

    peer = FakeCall(driver_of(first if function is gen else afirst)).start().data(b"1").data(b"2").data(b"3")
    assert await peer.end() is None
    assert peer.payloads() == [b"1"]


async def test_R116_a_deaf_sync_function_blocks_nobody_and_is_counted():
    """Its call ends, others run, its late output is dropped, and its thread is counted as stuck until it leaves."""
    inside, go = threading.Event(), threading.Event()

    def deaf(xs: Iterator[int]) -> Iterator[int]:
        next(xs)
        inside.set()
        go.wait(10)
        yield 1

    peer = FakeCall(driver_of(deaf, grace_s=0.05)).start().data(b"1")
    assert await asyncio.to_thread(inside.wait, 5)
    threads = peer.driver.threads
    peer.go()
    assert (await peer.ending()).status is Status.CANCELLED
    while not threads.stuck:  # noqa: ASYNC110 - a counter has no event
        await asyncio.sleep(0.01)
    assert threads.busy == 1
    go.set()
    assert await peer.driver.left(5)
    while threads.stuck:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert peer.got == []


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
@pytest.mark.parametrize("is_async", [False, True])
async def test_R123_exit_like_exceptions_fail_the_call_only(error, is_async):
    """They become Unexpected Error and never end the process."""

    def leave(x: int) -> int:
        raise error

    async def aleave(x: int) -> int:
        raise error

    ended = await FakeCall(driver_of(aleave if is_async else leave)).start().data(b"1").end()
    assert str(ended).startswith("Invoker: Unexpected Error")


async def test_R109_only_the_end_of_a_streaming_function_settles():
    """No code of a request/reply function sees the difference between an end and a cancel."""

    for function, settled in ((square, 0), (gen, 1)):
        peer = FakeCall(driver_of(function)).start()
        assert await peer.half_close().end() is None
        assert peer.settled == settled


async def test_R124_a_passed_deadline_ends_the_call():
    """The function is stopped and the status is DEADLINE_EXCEEDED."""

    async def forever() -> AsyncIterator[int]:
        await asyncio.sleep(3600)
        yield 1

    peer = FakeCall(driver_of(forever), deadline=time.monotonic() + 0.05).start()
    assert (await peer.end()).status is Status.DEADLINE_EXCEEDED
    assert await peer.driver.left(5)


async def test_R044_a_function_chooses_its_status():
    """A StatusError reaches the peer as it stands."""

    def refuse(x: int) -> int:
        raise StatusError(Status.NOT_FOUND, "no such row")

    error = await FakeCall(driver_of(refuse)).start().data(b"1").end()
    assert (error.status, str(error)) == (Status.NOT_FOUND, "no such row")


async def test_R119_a_call_that_raises_is_told_from_a_stream_that_raises():
    """UIE when the call itself raises."""

    def broken(xs: Iterator[int]) -> Iterator[int]:
        raise ValueError("boom")

    error = await FakeCall(driver_of(broken)).start().end()
    assert str(error) == "Invoker: Unexpected Invocation Error: ValueError: boom"


async def test_R013_R120_garbage_fails_its_own_call_only():
    """Another call of the same driver is untouched."""
    driver = driver_of(gen)
    good = FakeCall(driver).start().data(b"3")
    bad = FakeCall(driver).start().raw(b"\xff\xff\xff")
    assert isinstance(await bad.ending(), ProtocolViolation)
    assert await good.data(b"4").half_close().end() is None
    assert good.payloads() == [b"9", b"16"]


async def test_R159_one_call_is_one_window_of_the_caller():
    """Input is neither sliced nor repeated: one call of the function sees all of it, however long it pauses."""
    calls = []

    async def window(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        calls.append(1)
        yield sum([x async for x in xs])

    peer = FakeCall(driver_of(window)).start()
    for _ in range(3):
        peer.data(b"1")
        await asyncio.sleep(0.02)
    assert await peer.half_close().end() is None
    assert (calls, peer.payloads()) == ([1], [b"3"])


async def test_R034_a_sync_function_may_return_an_awaitable():
    """It is awaited on the loop while the thread waits."""

    def deferred(x: int):
        async def later():
            await asyncio.sleep(0)
            return x + 1

        return later()

    peer = FakeCall(driver_of(deferred)).start().data(b"1").data(b"2").half_close()
    assert await peer.end() is None
    assert peer.payloads() == [b"2", b"3"]
