"""The watchdog of the loop."""

import asyncio
import time

from invoker.ops.watchdog import Watchdog


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
    named = [line for line in caplog.messages if "blocks the event loop" in line]
    assert len(named) == 1
    assert "test_watchdog.py:10 in blocks()" in named[0]


async def test_a_loop_that_beats_is_left_alone(caplog):
    """Sleeping is not blocking."""
    watchdog = Watchdog(0.2)
    watchdog.start()
    await asyncio.sleep(0.5)
    watchdog.stop()
    assert not caplog.messages
