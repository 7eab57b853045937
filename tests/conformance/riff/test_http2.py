"""`RawCall`: a call in HTTP/2 frames of the suite's own."""

from __future__ import annotations

import asyncio

from invoker_conformance.riff import frames
from tests.conformance.riff.test_call import probing


async def test_a_call_in_one_write_is_answered() -> None:
    """Every reply is read to the status, in order."""
    async with probing("square") as probe, probe.raw() as call:
        call.send(frames.start(), frames.data(b"3"), frames.data(b"4"), end=True)
        call.flush()
        async with asyncio.timeout(probe.timeout_s):
            assert await call.ends() == [b"9", b"16"]
        assert call.trailers["grpc-status"] == "0"
        assert call.sent.endswith("D(0, 'application/json', '4'), half-close")


async def test_a_reset_behind_an_end_reaches_the_target() -> None:
    """Whatever it makes of it: the call is over there."""
    async with probing("total") as probe:
        watch = await probe.watch("total.calls", "total.closed")
        async with probe.raw() as call:
            call.send(frames.start(), frames.data(b"3"))
            call.flush()
            await watch.reaches("total.calls", 1)
            call.send(end=True)
            call.reset()
            assert call.sent.endswith("half-close, RST_STREAM")
        await watch.reaches("total.closed", 1)
