"""Tests of streams of tools."""

from __future__ import annotations

import asyncio
import gc

import pytest

from invoker.client.toolbridge import ToolCommunicationError, ToolSession
from invoker.errors import Status
from tests.protocols.toolbridge.client.peer import Peer


async def test_values_come_as_they_are_made(session: ToolSession, peer: Peer) -> None:
    """At the end the stream knows what the call took."""
    stream = session.open_stream("count", [1], stream_id="mine", chunk_size=7, buffer_size=3)
    assert [value async for value in stream] == [0]
    assert (stream.id, stream.total_chunks, stream.metrics.duration_ms) == ("mine", 4, 3)
    config = peer.last("StreamTool").config
    assert (config.chunk_size, config.buffer_size, config.backpressure_enabled) == (7, 3, True)
    assert [value async for value in stream] == []


async def test_T080_bytes_that_were_split_come_whole(session: ToolSession) -> None:
    """And those behind them as they are."""
    assert [value async for value in session.stream("split")] == [0, b"abcde", b"x"]


async def test_a_value_amid_split_bytes_is_an_error(session: ToolSession) -> None:
    """The rest of the bytes will not come."""
    with pytest.raises(ToolCommunicationError, match="5 bytes of a value are missing, and a str came"):
        _ = [value async for value in session.stream("torn")]


async def test_T086_each_value_is_of_an_output(session: ToolSession) -> None:
    """Other metadata is kept by key."""
    stream = session.stream("two")
    seen = [(value, stream.index) async for value in stream]
    assert seen == [(0, 0), ("a", 1)]
    assert stream.metadata == {"note": "b"}


async def test_a_stream_without_its_end_is_an_error(session: ToolSession) -> None:
    """Something was lost."""
    with pytest.raises(ToolCommunicationError, match="complete"):
        _ = [value async for value in session.stream("truncated")]


async def test_leaving_a_stream_cancels_it(session: ToolSession, peer: Peer) -> None:
    """The bridge sees it."""
    async with session.stream("endless") as stream:
        async for _ in stream:
            break
    await asyncio.to_thread(peer.cancelled.wait, 5)
    assert peer.cancelled.is_set()
    assert [value async for value in stream] == []


async def test_a_stream_that_is_dropped_is_cancelled(session: ToolSession, peer: Peer) -> None:
    """Nobody reads it any more."""
    assert await anext(session.stream("endless")) == 0
    gc.collect()
    await asyncio.to_thread(peer.cancelled.wait, 5)
    assert peer.cancelled.is_set()


async def test_a_stream_may_be_cancelled_while_it_is_read(session: ToolSession) -> None:
    """Its reader is told; cancelling the reader is another thing."""
    stream = session.stream("silent")
    assert await anext(stream) == 0
    reading = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    stream.cancel()
    with pytest.raises(ToolCommunicationError) as caught:
        await reading
    assert caught.value.code is Status.CANCELLED
    stream = session.stream("silent")
    assert await anext(stream) == 0
    reading = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_a_stream_has_a_deadline_if_asked(session: ToolSession) -> None:
    """Then the reader is told."""
    stream = session.open_stream("silent", deadline_s=0.2)
    with pytest.raises(ToolCommunicationError) as caught:
        _ = [value async for value in stream]
    assert caught.value.code is Status.DEADLINE_EXCEEDED
