"""Tests of one call in the hands of its caller."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from invoker.client import CallFailed, RiffClient
from invoker.errors import Status
from tests.protocols.riff.client.peer import Peer


async def test_cancel_wakes_who_iterates(peer: Peer) -> None:
    """With CANCELLED, and any number of times."""
    async with RiffClient(peer.target) as client:
        call = client.invoke([["a"]], function="silent")
        waiting = asyncio.create_task(call.collect())
        assert await asyncio.to_thread(peer.started.wait, 5)
        call.cancel()
        call.cancel()
        with pytest.raises(CallFailed) as caught:
            await waiting
    assert caught.value.status is Status.CANCELLED
    assert await asyncio.to_thread(peer.cancelled.wait, 5)


async def test_call_cancelled_before_its_start_is_never_made(peer: Peer) -> None:
    """Nothing goes on the wire."""
    async with RiffClient(peer.target) as client:
        call = client.invoke([["a"]])
        call.cancel()
        with pytest.raises(CallFailed, match="CANCELLED"):
            await call.collect()
    assert not peer.starts


async def test_call_cancelled_while_it_connects() -> None:
    """Nobody waits for the connection any more."""
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    writers: list[asyncio.StreamWriter] = []
    async with RiffClient(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
        call = client.invoke([["a"]])
        waiting = asyncio.create_task(call.collect())
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(CallFailed, match="CANCELLED"):
            await waiting
    server.close()
    for writer in writers:
        writer.close()


async def test_cancel_after_the_end_is_harmless(peer: Peer) -> None:
    """And iterating a second time is refused."""
    async with RiffClient(peer.target) as client:
        call = client.invoke([["a"]])
        assert await call.value() == "a"
        call.cancel()
        await call.close()
        with pytest.raises(RuntimeError, match="gives its outputs once"):
            await call.collect()


async def test_iterator_is_exhausted_after_its_end(peer: Peer) -> None:
    """As any iterator."""
    async with RiffClient(peer.target) as client:
        outputs = aiter(client.invoke([["a"]]))
        assert (await anext(outputs)).value == "a"
        for _ in range(2):
            with pytest.raises(StopAsyncIteration):
                await anext(outputs)


async def test_block_ends_the_call(peer: Peer) -> None:
    """For those who keep the iterator."""
    async with RiffClient(peer.target) as client:
        async with client.invoke([["a"]], function="endless") as call:
            outputs = aiter(call)
            await anext(outputs)
        assert await asyncio.to_thread(peer.cancelled.wait, 5)
        with pytest.raises(CallFailed, match="CANCELLED"):
            await anext(outputs)


async def test_break_cancels_a_call_that_has_a_name(peer: Peer) -> None:
    """It is the iterator that counts."""
    async with RiffClient(peer.target) as client:
        call = client.invoke([["a"]], function="endless")
        async for _ in call:
            break
        assert await asyncio.to_thread(peer.cancelled.wait, 5)
        call.cancel()


async def test_iterator_dropped_by_another_thread(peer: Peer) -> None:
    """Where the garbage collector may run."""
    async with RiffClient(peer.target) as client:
        kept = [aiter(client.invoke([["a"]], function="endless"))]
        await anext(kept[0])
        thread = threading.Thread(target=lambda: (kept.clear(), gc.collect()))
        thread.start()
        await asyncio.to_thread(thread.join)
        assert await asyncio.to_thread(peer.cancelled.wait, 5)


async def test_value_wants_exactly_one(peer: Peer) -> None:
    """None and two are told apart from one."""
    async with RiffClient(peer.target) as client:
        with pytest.raises(ValueError, match="gave 0 values"):
            await client.invoke([[]]).value()
        with pytest.raises(ValueError, match="gave 2 values"):
            await client.invoke([["a", "b"]]).value()
