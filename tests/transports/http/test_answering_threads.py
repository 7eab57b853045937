"""`invoker.transports.http.answering`: a sync function whose request is read by the loop runs in a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from invoker.context import Context
from invoker.errors import Overloaded, ShuttingDown, Status
from tests.transports.http.asked import Asked, square
from tests.transports.served import until


def raising(x: int) -> int:
    raise ValueError(x)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while Asked.drivers:
        Asked.drivers.pop().close()


async def test_a_sync_function_runs_in_a_thread() -> None:
    """The loop answers; the thread is free again before that."""
    seen: list[tuple[int, int]] = []
    go = threading.Event()

    def noted(x: int) -> int:
        go.wait(20)
        seen.append((threading.get_ident(), asked.driver.threads.busy))
        return x * x

    asked = Asked(noted)
    assert asked.begin()
    (invocation,) = asked.driver.engine.running.values()
    assert invocation.peer is asked.request.peer
    assert len(asked.driver.direct) == 1
    go.set()
    assert await asked.answered() == [(200, b"9")]
    ((thread, busy),) = seen
    assert (thread != threading.get_ident(), busy) == (True, 1)
    await until(lambda: not asked.driver.direct)
    assert (asked.driver.threads.busy, asked.driver.engine.running) == (0, {})
    assert asked.request.peer.number == 200


async def test_R117_a_fault_in_the_thread_is_500_without_its_text() -> None:
    """And a function that raises ends its own call only."""
    for function, fails, expected in ((raising, "", b"FunctionError"), (square, "respond", b"InternalError")):
        asked = Asked(function)
        asked.prepared.fails = fails
        assert asked.begin()
        assert await asked.answered() == [(500, expected)]


async def test_without_a_free_thread_a_sync_function_is_refused() -> None:
    """Its invocation, which was open already, has ended with that error."""
    asked = Asked(square)
    asked.driver.threads.slots = 0
    assert asked.begin()
    assert asked.source.responses == [(500, b"Overloaded")]
    assert asked.driver.engine.counters.finished == {Status.RESOURCE_EXHAUSTED: 1}
    assert (asked.driver.direct, asked.driver.engine.running) == (set(), {})


@pytest.mark.parametrize("cause", ["late", "cut", "drained"])
async def test_a_client_does_not_wait_for_a_thread_that_stays(cause: str) -> None:
    """Its request is late, the process is short of memory, or a drain is over; what the function gives is dropped."""
    begun, may_leave = threading.Event(), threading.Event()

    def stays(x: int) -> int:
        begun.set()
        may_leave.wait(20)
        return x

    asked = Asked(stays)
    if cause == "late":
        asked.prepared.timeout_s = 0.05
    assert asked.begin()
    await asyncio.to_thread(begun.wait, 20)
    if cause == "cut":
        (invocation,) = asked.driver.engine.running.values()
        await asyncio.to_thread(invocation.stop, Overloaded())
    elif cause == "drained":
        assert asked.request._listener is not None
        asked.request._listener.fail(ShuttingDown())
    expected = {"late": "DeadlineExceeded", "cut": "Overloaded", "drained": "ShuttingDown"}[cause]
    assert await asked.answered() == [(500, expected.encode())]
    assert bool(asked.driver.engine.running) == (cause == "cut")  # else it has ended, although its thread stays
    may_leave.set()
    assert await asked.driver.left(5)
    await until(lambda: not asked.driver.direct)
    await asyncio.sleep(0)
    assert asked.source.responses == [(500, expected.encode())]
    (status,) = asked.driver.engine.counters.finished
    assert status is not Status.OK


async def test_R115_a_thread_hears_that_its_client_has_left() -> None:
    """Its context says so, and nobody is answered."""

    def waits(x: int, context: Context) -> int:
        begun.set()
        until_s = time.monotonic() + 20
        while not context.cancelled and time.monotonic() < until_s:
            time.sleep(0.01)
        heard.append(context.cancelled)
        return x

    begun, heard = threading.Event(), list[bool]()
    asked = Asked(waits)
    assert asked.begin()
    await asyncio.to_thread(begun.wait, 20)
    asked.request.leave()
    await until(lambda: not asked.driver.direct)
    assert heard == [True]
    assert asked.source.responses == []
    assert asked.driver.engine.counters.finished == {Status.CANCELLED: 1}
