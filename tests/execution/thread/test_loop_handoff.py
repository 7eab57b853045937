"""`LoopHandoff`: a thread that waits while the loop carries on with its conversation."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from invoker.core.steps import Close
from invoker.errors import Cancelled
from invoker.execution.thread.loop_handoff import LoopHandoff
from tests.execution.memory import driver_of


async def test_the_thread_gets_how_it_ended():
    """It holds no slot while it waits, and is as before afterwards."""
    driver = driver_of(lambda x: x)
    driver.loop = asyncio.get_running_loop()
    driver.threads.enter()
    ended, busy = Close(), []

    async def rest() -> Close:
        busy.append(driver.threads.busy)
        return ended

    assert await asyncio.to_thread(LoopHandoff(driver, lambda: False).run, rest()) is ended
    assert (busy, driver.threads.busy) == ([0], 1)
    driver.close()


async def test_the_rest_is_cancelled_when_the_peer_is_gone():
    """The sweeper notices it."""
    driver = driver_of(lambda x: x)
    driver.loop = asyncio.get_running_loop()
    gone, begun = threading.Event(), asyncio.Event()
    heard: list[Any] = []

    async def rest() -> Close:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            heard.append(error)
            raise
        raise AssertionError("nothing sets this event")

    waiting = asyncio.create_task(asyncio.to_thread(LoopHandoff(driver, gone.is_set).run, rest()))
    await begun.wait()
    gone.set()
    close = await waiting
    assert isinstance(close.error, Cancelled)
    assert len(heard) == 1
    driver.close()


def test_the_sweeper_lets_go_of_it():
    """Once it is over, whatever the peer does."""
    away = LoopHandoff(driver_of(lambda x: x), lambda: False)
    assert away.sweep(0.0)
