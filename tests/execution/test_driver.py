"""What conversations share, and the drain."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from invoker.errors import ShuttingDown, Status
from invoker.execution.bodies.loop import LoopRunner
from invoker.execution.bodies.thread import ThreadRunner
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of
from tests.execution.wires import LIMIT_S, Call, direct_driver

ROOT = Path(__file__).resolve().parent.parent.parent


def square(x: int) -> int:
    return x * x


async def agen(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x


async def test_R036_sync_functions_run_in_threads_and_async_ones_on_the_loop():
    """The runner follows from the function."""
    for function, kind in ((square, ThreadRunner), (agen, LoopRunner)):
        driver = driver_of(function)
        peer = FakeCall(driver).start().data(b"1")
        await peer.outputs(1)
        (conversation,) = driver.conversations
        assert type(conversation.runners["riff"]) is kind
        assert await peer.half_close().end() is None
        driver.threads.close()


async def test_R024_a_drain_lets_what_runs_end_and_refuses_the_rest():
    """A running call completes with OK; a new one is told that we are shutting down."""
    driver = driver_of(agen)
    running = FakeCall(driver).start().data(b"1")
    await running.outputs(1)
    draining = asyncio.create_task(driver.drain(10))
    await asyncio.sleep(0)
    late = await FakeCall(driver).start().ending()
    assert isinstance(late, ShuttingDown)
    assert not draining.done()
    assert await running.half_close().end() is None
    assert await draining is True


async def test_R025_a_drain_is_bounded():
    """Then what still runs is cut with UNAVAILABLE."""
    driver = driver_of(agen)
    running = FakeCall(driver).start().data(b"1")
    await running.outputs(1)
    assert await driver.drain(0.05) is False
    error = await running.end()
    assert error.status is Status.UNAVAILABLE
    assert str(error).startswith("Invoker: Shutting Down")
    assert await driver.left(5)
    assert not driver.conversations


async def test_a_full_pool_refuses_the_call_only():
    """LimitExceeded reaches the peer, and the next call is served once there is room."""
    driver = driver_of(square, threads=1)
    first = FakeCall(driver).start().data(b"2")
    await first.outputs(1)
    second = await FakeCall(driver).start().data(b"2").half_close().ending()
    assert second.status is Status.RESOURCE_EXHAUSTED
    assert await first.half_close().end() is None
    assert await driver.left(5)
    while driver.threads.busy:  # noqa: ASYNC110 - a counter has no event
        await asyncio.sleep(0.01)
    assert await FakeCall(driver).start().data(b"2").half_close().end() is None
    driver.threads.close()


class Deaf:
    """A direct call whose function stays in its thread until it may go, and which its driver knows of."""

    def __init__(self) -> None:
        inside, self.go = threading.Event(), threading.Event()

        def deaf(x: int) -> int:
            inside.set()
            self.go.wait(LIMIT_S)
            return x

        self.driver = direct_driver(deaf)
        self.call = Call(self.driver)
        self.driver.entered_direct(self.call.conversation)
        self.call.start().data(b"1").half_close()
        assert inside.wait(LIMIT_S)

    def leave(self) -> None:
        """Let the function return; its thread tells the driver, as that of a transport does."""
        self.go.set()
        self.call.end()
        self.driver.exited_direct(self.call.conversation)


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    made = Deaf()
    yield made
    made.leave()


async def test_R024_a_drain_waits_for_direct_calls(deaf):
    """Their threads tell the loop when they are free."""
    draining = asyncio.create_task(deaf.driver.drain(LIMIT_S))
    await asyncio.sleep(0)
    assert not draining.done()
    await asyncio.to_thread(deaf.leave)
    assert await draining is True
    assert deaf.call.wire.status == (0, "")


async def test_R025_a_direct_call_that_outlives_the_drain_is_cut(deaf):
    """With UNAVAILABLE; the thread is still in user code then."""
    assert await deaf.driver.drain(0.01) is False
    code, detail = deaf.call.wire.status
    assert code == int(Status.UNAVAILABLE)
    assert detail.startswith("Invoker: Shutting Down: the invocation was cut")


async def test_R116_a_direct_body_that_stays_in_user_code_is_left_behind(deaf):
    """The end of the process does not take it for clean, and names it; once it has left there is nothing to name."""
    (number,) = deaf.driver.engine.running
    assert await deaf.driver.drain(0.01) is False
    assert await deaf.driver.left(0.01) is False
    assert deaf.driver.left_behind == [f"'deaf' (invocation {number})"]
    leaving = asyncio.create_task(deaf.driver.left(LIMIT_S))
    await asyncio.sleep(0)
    assert not leaving.done()
    await asyncio.to_thread(deaf.leave)
    assert await leaving is True
    assert deaf.driver.left_behind == []


async def test_a_direct_call_without_an_invocation_has_nothing_to_name():
    """It waits for its first frame, so it is no body that stays behind, but it is not over."""
    driver = direct_driver(square)
    call = Call(driver)
    driver.entered_direct(call.conversation)
    assert (driver.left_behind, await driver.left(0.01)) == ([], False)
    call.cancel().end()
    driver.exited_direct(call.conversation)
    assert await driver.left(LIMIT_S) is True


async def test_who_waits_for_a_conversation_in_a_thread_hears_of_its_end_without_a_drain():
    """At once, and not when the time is over."""
    driver = direct_driver(square)
    driver.loop = asyncio.get_running_loop()
    driver.entered_direct(running := Direct())
    leaving = asyncio.create_task(driver.left(20 * LIMIT_S))
    await asyncio.sleep(0)
    thread = threading.Thread(target=driver.exited_direct, args=(running,))
    thread.start()
    assert await asyncio.wait_for(leaving, LIMIT_S) is True
    thread.join()


class Direct:
    """A conversation that has no invocation."""

    invocation = None
