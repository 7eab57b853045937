"""What a sync function returned to be awaited."""

from __future__ import annotations

import asyncio

import pytest

from invoker import InputCancelled
from invoker.execution.bodies.awaiting import Awaiting


async def five() -> int:
    await asyncio.sleep(0)
    return 5


async def test_R034_a_thread_waits_for_the_loop():
    """It gets the result."""
    assert await asyncio.to_thread(Awaiting(asyncio.get_running_loop()).wait, five()) == 5


@pytest.mark.parametrize("is_early", [True, False])
async def test_R115_a_cancel_ends_the_wait(is_early):
    """Whether it comes before or while the thread waits."""
    awaiting, began = Awaiting(asyncio.get_running_loop()), asyncio.Event()

    async def endless() -> None:
        began.set()
        await asyncio.get_running_loop().create_future()

    if is_early:
        awaiting.cancel()
    waits = asyncio.ensure_future(asyncio.to_thread(awaiting.wait, endless()))
    if not is_early:
        await began.wait()
        awaiting.cancel()
    with pytest.raises(InputCancelled):
        await waits


def test_without_a_loop_nothing_can_be_awaited():
    """The coroutine is closed, so that Python does not warn of it."""
    with pytest.raises(TypeError, match="nothing here can await it"):
        Awaiting(None).wait(five())
