"""Tests of what waits to be sent."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from invoker.protocols.evergreen.client.outbox import HIGH_BYTES, JOIN_BYTES, Outbox


async def test_small_messages_travel_together() -> None:
    """Up to a size; order is kept, and the end comes after all."""
    outbox = Outbox(lambda: None)
    for message in (b"a", b"b", bytes(JOIN_BYTES), b"c"):
        outbox.put(message)
    outbox.end()
    assert [message async for message in outbox.feed()] == [b"ab", bytes(JOIN_BYTES), b"c"]


async def test_writers_wait_for_room() -> None:
    """And go on when something was sent."""
    outbox = Outbox(lambda: None)
    outbox.put(bytes(HIGH_BYTES))
    assert outbox.is_full
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    async with aclosing(outbox.feed()) as feed:
        await anext(feed)
        await asyncio.wait_for(waiting, 5)


async def test_end_of_sending_lets_everybody_go_on() -> None:
    """Nothing is held then, and somebody is told."""
    told: list[bool] = []
    outbox = Outbox(lambda: told.append(True))
    outbox.put(bytes(HIGH_BYTES))
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    outbox.close()
    await asyncio.wait_for(waiting, 5)
    outbox.put(b"late")
    assert not outbox.is_full
    assert told == [True]


async def test_feed_waits_for_more() -> None:
    """Until the end is said."""
    outbox = Outbox(lambda: None)
    async with aclosing(outbox.feed()) as feed:
        coming = asyncio.ensure_future(anext(feed))
        await asyncio.sleep(0)
        outbox.put(b"a")
        assert await asyncio.wait_for(coming, 5) == b"a"
