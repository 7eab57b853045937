"""Tests of one call on the wire: endings that race with our own writes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import grpc.aio
import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.client import CallFailed, ConnectFailed, RiffClient
from invoker.connect.exchange import Exchange, connected
from invoker.errors import Status
from tests.protocols.riff.client.peer import Peer
from tests.transports.served import until


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 1000


@pytest.mark.timeout(20)
async def test_R114_peer_that_ends_early_gives_its_values_and_ok(peer: Peer) -> None:
    """Late writes fail, but neither the value nor the status is lost."""
    async with RiffClient(peer.target) as client:
        for _ in range(50):
            outs = await client.invoke([endless()], function="first").collect()
            assert [out.payload for out in outs] == [b"x" * 1000]


@pytest.mark.timeout(20)
async def test_status_of_the_peer_survives_a_late_write(peer: Peer) -> None:
    """grpc.aio would say INTERNAL for some of these."""
    async with RiffClient(peer.target) as client:
        for _ in range(50):
            with pytest.raises(CallFailed) as caught:
                await client.invoke([endless(), endless()], function="shutting").collect()
            assert (caught.value.status, caught.value.detail) == (Status.UNAVAILABLE, "Invoker: Shutting Down")


@pytest.mark.timeout(20)
async def test_values_that_wait_are_not_lost_to_a_late_write(peer: Peer) -> None:
    """A slow reader still gets everything that was sent before the end."""
    async with RiffClient(peer.target) as client:
        for _ in range(5):
            seen = []
            async for out in client.invoke([endless()], function="source"):
                await asyncio.sleep(0.02)
                seen.append(out.value)
            assert seen == [0, 1, 2]


async def test_a_half_close_that_fails_hides_neither_values_nor_the_status(peer: Peer) -> None:
    """grpc.aio raises another error for it than for a write, if the deadline passes at that moment."""

    async def fail() -> None:
        raise grpc.aio.InternalError("execute_batch")

    async with grpc.aio.insecure_channel(peer.target) as channel:
        call: Any = channel.stream_stream("/streaming.Riff/Invoke")

        def start() -> Any:
            rpc = call(metadata=(("invoker-function", "source"),))
            rpc.done_writing = fail
            return rpc

        async def begin() -> bytes:
            return pb.InputSignal(start=pb.StartFrame()).SerializeToString()

        exchange = Exchange(channel, start, begin, [], target="peer", connect_timeout_s=5)
        await exchange.open()
        assert exchange._feeder is not None
        await asyncio.wait({exchange._feeder})
        assert [await exchange.read() is None for _ in range(4)] == [False, False, False, True]
        await exchange.close()


async def test_input_that_is_cancelled_does_not_look_like_its_end(peer: Peer) -> None:
    """The function must not take a part for the whole."""

    async def gives_up() -> AsyncIterator[str]:
        yield "a"
        raise asyncio.CancelledError

    async with RiffClient(peer.target) as client:
        with pytest.raises(CallFailed, match="an input was cancelled"):
            await client.invoke([gives_up(), ["b"]]).collect()
    assert not peer.half_closed.is_set()


async def test_input_that_hangs_is_stopped_when_the_peer_ends(peer: Peer) -> None:
    """The call is over when the peer says so."""
    stopped = asyncio.Event()

    async def hangs() -> AsyncIterator[str]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with RiffClient(peer.target) as client:
        assert await client.invoke([hangs()], function="first").value() == "a"
        assert stopped.is_set()


async def test_a_connection_is_there_or_will_never_be(peer: Peer) -> None:
    """A dead port is no connection, at once; who does not answer at all is one after the time for it."""
    async with grpc.aio.insecure_channel(peer.target) as channel:
        assert await connected(channel, peer.target, 20)
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        assert not await connected(channel, "127.0.0.1:1", 20)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # it accepts, and says nothing of HTTP/2
        target = f"127.0.0.1:{mute.getsockname()[1]}"
        async with grpc.aio.insecure_channel(target) as channel:
            with pytest.raises(ConnectFailed, match=f"no connection to {target} within 0.1 s"):
                await connected(channel, target, 0.1)


async def test_inputs_of_a_call_that_finds_nobody_are_closed() -> None:
    """Although nothing was ever taken of them."""

    async def values() -> AsyncGenerator[bytes, None]:
        yield b"x"

    feed, target = values(), "127.0.0.1:1"
    async with grpc.aio.insecure_channel(target) as channel:
        start = channel.stream_stream("/a.B/C")
        exchange = Exchange(channel, start, None, [feed], target=target, connect_timeout_s=0.0)
        with pytest.raises(ConnectFailed):
            await exchange.open()
        await exchange.close()
    with pytest.raises(StopAsyncIteration):
        await anext(feed)


async def test_a_reader_that_is_cancelled_with_its_call_is_cancelled(peer: Peer) -> None:
    """The end of the call does not hide that of the task, which its owner waits for."""
    async with RiffClient(peer.target) as client:
        call = client.invoke([endless()], function="silent")
        task = asyncio.create_task(call.collect())
        await until(lambda: call._exchange._reading)
        call.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
