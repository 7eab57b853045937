"""The watchdog of the loop."""

import asyncio
import sys
import threading
import time

from invoker.telemetry.watchdog import Watchdog


def blocks():
    time.sleep(0.4)


async def test_a_blocking_line_is_named_once(caplog):
    """File, line and function of the author's code, and what to do about it."""
    watchdog = Watchdog(0.1)
    watchdog.start()
    try:
        for _ in range(2):
            await asyncio.sleep(0.05)
            blocks()
        await asyncio.sleep(0.05)
    finally:
        watchdog.stop()
    # On a machine that is very busy, the loop may be late elsewhere as well.
    named = [line for line in caplog.messages if "test_watchdog.py:12 in blocks() blocks the event loop" in line]
    assert len(named) == 1


async def test_a_loop_that_beats_is_left_alone(caplog):
    """Sleeping is not blocking."""
    watchdog = Watchdog(0.2)
    watchdog.start()
    await asyncio.sleep(0.5)
    watchdog.stop()
    assert not caplog.messages


async def test_the_loop_beats_until_the_stop():
    """Four times within what it may be silent for."""
    watchdog = Watchdog(0.04)
    watchdog._tick(asyncio.get_running_loop())
    assert time.monotonic() - 5 < watchdog._beat
    watchdog._beat = 0.0
    await asyncio.sleep(0.02)
    assert watchdog._beat > 0
    watchdog.stop()
    assert watchdog._timer.cancelled()


def test_only_lines_of_authors_are_named(caplog):
    """There may be none: the loop's thread is gone, or nothing but the standard library runs in it."""
    watchdog = Watchdog(1.0)
    watchdog._name(None, 2.0)
    thread = threading.Thread(target=(over := threading.Event()).wait, daemon=True)
    thread.start()
    watchdog._name(sys._current_frames()[thread.ident], 2.0)
    over.set()
    thread.join()
    assert not caplog.messages
    watchdog._name(sys._getframe(), 2.0)
    assert "in test_only_lines_of_authors_are_named() blocks the event loop for 2.00 s" in caplog.text


def test_who_has_started_the_loop_is_not_named(caplog):
    """A process that stood still was late, though nothing blocked it."""
    waits, over = threading.Event(), asyncio.Event()

    async def main():
        asyncio.get_running_loop().call_soon(waits.set)
        await over.wait()

    def starts():
        runner.run(main())

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        thread = threading.Thread(target=starts)
        thread.start()
        assert waits.wait(5)
        Watchdog(1.0)._name(sys._current_frames()[thread.ident], 2.0)
        loop.call_soon_threadsafe(over.set)
        thread.join()
    assert not caplog.messages
