"""Writing never hides how a call ended."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from invoker_conformance.riff import frames
from invoker_conformance.wire import end_sending, send
from tests.conformance.faulty import Peer

SIGNAL = frames.start().SerializeToString()


async def test_the_status_survives_writes_that_come_too_late() -> None:
    """A call that the peer refuses at once keeps the peer's status, however the writes race against it."""
    async with Peer() as peer, grpc.aio.insecure_channel(peer.address) as channel:
        for _ in range(50):
            call: Any = channel.stream_stream(frames.PATH)(metadata=(("invoker-function", "nobody"),))
            while await send(call, SIGNAL):
                pass
            await end_sending(call)
            assert await call.code() is grpc.StatusCode.NOT_FOUND


async def test_a_cancelled_call_takes_no_more() -> None:
    """The write says so and raises nothing."""
    async with Peer() as peer, grpc.aio.insecure_channel(peer.address) as channel:
        call: Any = channel.stream_stream(frames.PATH)(metadata=(("invoker-function", "square"),))
        assert await send(call, SIGNAL)
        call.cancel()
        assert not await send(call, SIGNAL)
        await end_sending(call)


async def test_a_cancelled_task_is_still_cancelled() -> None:
    """Its own cancellation is not taken for the call's."""

    class Stuck:
        async def wait_for_connection(self) -> None:
            await asyncio.Event().wait()

    writing = asyncio.ensure_future(send(Stuck(), SIGNAL))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
