"""Sync bodies in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

from invoker.drive.bodies.thread import OUTPUT_QUEUE
from tests.drive.looplines import Line
from tests.drive.memory import driver_of


async def test_a_stopped_emit_raises_what_except_exception_cannot_eat():
    """The next emit of a body whose invocation is over raises StopInvocation."""
    seen, left = [], threading.Event()

    def stubborn() -> Iterator[int]:
        try:
            while True:
                try:
                    yield 1
                except Exception:
                    seen.append("eaten")
        finally:
            left.set()

    peer = Line(driver_of(stubborn)).start()
    await peer.outputs(3)
    peer.go()
    await peer.end()
    assert await asyncio.to_thread(left.wait, 5)
    assert await peer.driver.left(5)
    assert seen == []
    peer.driver.threads.close()


async def test_the_queue_to_the_wire_is_bounded():
    """A body is never further ahead than the queue and one batch."""
    made = []

    def numbers() -> Iterator[int]:
        for number in range(1000):
            made.append(number)
            yield number

    peer = Line(driver_of(numbers))
    peer.is_full = True
    peer.start()
    await asyncio.sleep(0.1)
    assert len(made) <= 3 * OUTPUT_QUEUE
    peer.take()
    assert await peer.end() is None
    assert len(peer.got) == 1000
    peer.driver.threads.close()


async def test_R036_a_blocking_function_does_not_stall_the_loop():
    """While one call blocks its thread, another one is answered."""
    go = threading.Event()

    def wait(xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            if x == 0:
                go.wait(10)
            yield x

    driver = driver_of(wait)
    slow = Line(driver).start().data(b"0").half_close()
    quick = Line(driver).start().data(b"1").half_close()
    assert await asyncio.wait_for(quick.ending(), 5) is None
    assert not slow.is_over
    go.set()
    assert await slow.end() is None
    driver.threads.close()
