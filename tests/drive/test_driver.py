"""What conversations share, and the drain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from invoker.body.prepare import prepare_function
from invoker.drive.bodies.loop import LoopRunner
from invoker.drive.bodies.thread import ThreadRunner
from invoker.drive.driver import Place, place_of
from invoker.errors import ShuttingDown, Status
from tests.drive.looplines import Line
from tests.drive.memory import driver_of


def square(x: int) -> int:
    return x * x


async def agen(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x


def test_one_function_decides_where_a_body_runs():
    """A sync function has its call's own thread only where no function of the process needs the loop."""
    sync, other = prepare_function(square).spec, prepare_function(agen).spec
    assert place_of(sync) is place_of(sync, [sync]) is Place.CALL
    assert place_of(sync, [sync, other]) is Place.POOL
    assert place_of(other) is place_of(other, [sync]) is Place.LOOP
    assert [driver_of(*some).is_direct for some in ((square,), (agen,), (square, agen))] == [True, False, False]


async def test_R036_sync_functions_run_in_threads_and_async_ones_on_the_loop():
    """The runner follows from the function."""
    for function, kind in ((square, ThreadRunner), (agen, LoopRunner)):
        driver = driver_of(function)
        peer = Line(driver).start().data(b"1")
        await peer.outputs(1)
        (conversation,) = driver.conversations
        assert type(conversation.runners["riff"]) is kind
        assert await peer.half_close().end() is None
        driver.threads.close()


async def test_R024_a_drain_lets_what_runs_end_and_refuses_the_rest():
    """A running call completes with OK; a new one is told that we are shutting down."""
    driver = driver_of(agen)
    running = Line(driver).start().data(b"1")
    await running.outputs(1)
    draining = asyncio.create_task(driver.drain(10))
    await asyncio.sleep(0)
    late = await Line(driver).start().ending()
    assert isinstance(late, ShuttingDown)
    assert not draining.done()
    assert await running.half_close().end() is None
    assert await draining is True


async def test_R025_a_drain_is_bounded():
    """Then what still runs is cut with UNAVAILABLE."""
    driver = driver_of(agen)
    running = Line(driver).start().data(b"1")
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
    first = Line(driver).start().data(b"2")
    await first.outputs(1)
    second = await Line(driver).start().data(b"2").half_close().ending()
    assert second.status is Status.RESOURCE_EXHAUSTED
    assert await first.half_close().end() is None
    assert await driver.left(5)
    while driver.threads.busy:  # noqa: ASYNC110 - a counter has no event
        await asyncio.sleep(0.01)
    assert await Line(driver).start().data(b"2").half_close().end() is None
    driver.threads.close()
