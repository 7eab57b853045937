"""Thousands of mixed calls leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import tracemalloc
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.core.invocation import Invocation
from invoker.execution.loop.reactor import Reactor
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of
from tests.protocols.graphpipe.asking import ask
from tests.transports.models import inferring
from tests.transports.served import until


def sync_body(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        if x == 13:
            raise ValueError("boom")
        if x == 99:
            return
        yield x


async def async_body(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        if x == 13:
            raise ValueError("boom")
        if x == 99:
            return
        yield x


async def one_of_each(driver) -> None:
    """OK, error, cancel, deadline, early return, a reader that never reads, bad frames."""
    ok = FakeCall(driver).start().data(b"1").half_close()
    raises = FakeCall(driver).start().data(b"1").data(b"13")
    early = FakeCall(driver).start().data(b"99").data(b"1")
    late = FakeCall(driver, deadline=time.monotonic() + 0.01).start().data(b"1")
    bad = FakeCall(driver).start().raw(b"\xff\xff")
    deaf = FakeCall(driver).start()
    deaf.is_full = True
    for _ in range(100):
        deaf.data(b"1")
    gone = FakeCall(driver).start().data(b"1")
    await gone.outputs(1)
    gone.go()
    deaf.go()
    for one in (ok, raises, early, late, bad, deaf, gone):
        await one.ending()
    assert await driver.left(5)


def alive() -> int:
    """Invocations and conversations that somebody holds on to."""
    return sum(isinstance(one, (Invocation, Reactor)) for one in gc.get_objects())


@pytest.mark.timeout(40)
@pytest.mark.parametrize("function", [sync_body, async_body])
async def test_R011_mixed_calls_leave_tasks_threads_and_memory_flat(function):
    """525 calls: no task, no invocation, no conversation stays, and memory does not grow with their number."""
    driver = driver_of(function)
    gc.collect()
    others = alive()  # what other tests of this process have left behind
    for _ in range(20):
        await one_of_each(driver)
    gc.collect()
    tracemalloc.start()
    tasks, threads, (before, _) = len(asyncio.all_tasks()), threading.active_count(), tracemalloc.get_traced_memory()
    for _ in range(75):
        await one_of_each(driver)
    await asyncio.sleep(0.05)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(asyncio.all_tasks()) <= tasks
    assert threading.active_count() <= threads + 8  # idle threads of the pool
    assert not driver.engine.running
    assert not driver.conversations
    assert not driver.leaving
    assert driver.threads.busy == 0
    assert alive() - others <= 8  # what an idle thread's last frame may still hold
    assert grown < 75_000


class Body(bytearray):
    """A request that can be watched."""


def raises(x: NDArray[Any]) -> NDArray[Any]:
    raise ValueError(f"{x.ndim} dimensions")


async def araises(x: NDArray[Any]) -> NDArray[Any]:
    raises(x)
    return x


@pytest.mark.parametrize("function", [raises, araises])
async def test_R011_what_a_function_that_raises_was_given_is_let_go(function: Any) -> None:
    """At once, though the error's frames hold it: the collector may not look for long."""
    gc.collect()
    gc.disable()
    try:
        async with inferring(function) as one:
            body = Body(ask(np.zeros(300_000, "f4")))
            watched = weakref.ref(body)
            response = await one.infer(one.first, body, transport="test")
            assert response.error is not None
            del body, response
            await until(lambda: watched() is None)
    finally:
        gc.enable()
