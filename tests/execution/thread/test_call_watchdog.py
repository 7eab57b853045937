"""What the sweeper does about a conversation that takes too long; the time is the test's."""

from __future__ import annotations

import asyncio
import threading

import pytest

from invoker.errors import Cancelled, InputCancelled
from invoker.execution.thread.call_watchdog import CallWatchdog
from tests.execution.memory import driver_of


def square(x: int) -> int:
    return x * x


def test_R134_an_invocation_that_outlives_its_inputs_is_logged_once(caplog):
    """Not before the time is over, and not before the inputs have ended."""
    watchdog = CallWatchdog(driver_of(square, lingering_s=60))
    watchdog.look(1e6, None)
    watchdog.ended_at = 100
    watchdog.look(160, None)
    assert caplog.text == ""
    watchdog.look(161, None)
    watchdog.look(1000, None)
    assert caplog.text.count("goes on although its inputs ended 60 s ago") == 1


def test_R116_a_deaf_thread_is_counted_until_it_leaves():
    """It has a grace; its slot counts as stuck once."""
    driver = driver_of(square, grace_s=5)
    watchdog = CallWatchdog(driver)
    for now in (100, 105):
        watchdog.notice_gone(now, None)
    assert driver.threads.stuck == 0
    for now in (105.1, 200):
        watchdog.notice_gone(now, None)
    assert driver.threads.stuck == 1
    watchdog.left()
    assert driver.threads.stuck == 0


def test_a_thread_that_has_left_is_not_counted():
    """The look and the end may come together."""
    driver = driver_of(square, grace_s=5)
    watchdog = CallWatchdog(driver)
    watchdog.notice_gone(100, None)
    watchdog.left()
    watchdog.notice_gone(200, None)
    assert driver.threads.stuck == 0


@pytest.mark.parametrize("is_gone_before", [True, False])
async def test_R115_a_wait_ends_when_the_peer_goes(is_gone_before):
    """Whether it goes before the thread waits, or meanwhile."""
    driver, raised = driver_of(square), []
    driver.loop = asyncio.get_running_loop()
    watchdog, begun = CallWatchdog(driver), asyncio.Event()

    async def sleep() -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait() -> None:
        try:
            watchdog.wait(sleep())
        except InputCancelled as error:
            raised.append(error.error)

    if is_gone_before:
        watchdog.notice_gone(100, None)
    thread = threading.Thread(target=wait, name="invoker-wait")
    thread.start()
    if not is_gone_before:
        await asyncio.wait_for(begun.wait(), 5)
        watchdog.notice_gone(100, None)
    await asyncio.to_thread(thread.join, 5)
    assert [type(one) for one in raised] == [Cancelled]
