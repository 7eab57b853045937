"""Tests of the loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from invoker.connect.portal import Portal, on_loop


def test_work_runs_on_a_thread_of_its_own() -> None:
    """Its results and errors come back; after the end nothing runs."""
    portal = Portal()
    try:

        async def where() -> str:
            return threading.current_thread().name

        async def fail() -> None:
            raise ValueError("x")

        assert portal.run(where()) == "invoker-client"
        with pytest.raises(ValueError, match="x"):
            portal.run(fail())
        done = threading.Event()
        portal.soon(done.set)
        assert done.wait(5)
    finally:
        portal.close()
    assert not portal.is_open
    with pytest.raises(RuntimeError, match="the client is closed"):
        portal.run(where())


def test_loop_cannot_wait_for_itself() -> None:
    """That would never end."""
    portal = Portal()

    async def inner() -> None:
        await asyncio.sleep(0)

    async def outer() -> None:
        portal.run(inner())

    try:
        with pytest.raises(RuntimeError, match="cannot be used by the async inputs"):
            portal.run(outer())
    finally:
        portal.close()


async def test_finalizers_of_other_threads_come_to_the_loop() -> None:
    """What they do is the loop's; after its end they do nothing."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[threading.Thread] = loop.create_future()
    await asyncio.to_thread(on_loop, loop, lambda: done.set_result(threading.current_thread()))
    assert await asyncio.wait_for(done, 5) is threading.current_thread()
    closed = asyncio.new_event_loop()
    closed.close()
    on_loop(closed, lambda: pytest.fail("it is over"))


def test_an_interrupt_cancels_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which would go on otherwise, although nobody waits for it."""
    begun, cancelled = threading.Event(), threading.Event()
    begin = asyncio.run_coroutine_threadsafe

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    def interrupted(*args: Any) -> Any:
        future = begin(*args)

        def result() -> None:
            assert begun.wait(5)
            raise KeyboardInterrupt

        monkeypatch.setattr(future, "result", result)
        return future

    portal = Portal()
    try:
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            portal.run(work())
        assert cancelled.wait(5)
    finally:
        portal.close()
