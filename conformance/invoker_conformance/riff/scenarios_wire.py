"""Scenarios in raw HTTP/2 frames: cancels and bursts that gRPC libraries send, but whose API does not offer."""

from __future__ import annotations

import asyncio

from invoker_conformance.riff import frames
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import NAC
from invoker_conformance.scenario import Failure, breaking, scenario

_UNACCEPTABLE = "application/x-unacceptable"
_BURST = 1000
_RESETS_MS = (0, 1, 2, 4)
# If this machine was busy and sent the two frames further apart, the target may have handled the half-close first.
_GAP_S = 0.006


@scenario("R-109", "R-110", function=("total", "marks"))
async def reset_behind_the_half_close_is_a_cancel(probe: Probe) -> None:
    """A cancel as grpc-js sends it, END_STREAM and then RST_STREAM, never looks like the end of the input."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed", "total.closed")
    late = 0
    for number in range(40):
        async with probe.raw() as call:
            call.send(frames.start(), frames.data(b"1"), frames.data(b"2"))
            call.flush()
            await watch.reaches("total.calls", number + 1)
            call.send(end=True)
            call.flush()
            began = probe.clock()
            await asyncio.sleep(_RESETS_MS[number % 4] / 1000)
            call.reset()
            late += probe.clock() - began > _GAP_S
            await watch.reaches("total.closed", number + 1)
            if (completed := await watch.grown("total.completed")) > late:
                met = f"{completed} of {number + 1} cancelled calls completed"
                raise Failure(met, "that their inputs raise", call.sent, breaks=("R-109",))
    with breaking("R-110"):
        await watch.reaches("total.failed", 40 - late)


@scenario("R-031", function="square")
async def replies_behind_a_burst_are_all_there(probe: Probe) -> None:
    """A thousand frames and the half-close in one write are answered by a thousand replies before OK."""
    async with probe.raw() as call:
        call.send(frames.start(), *(frames.data(b"2") for _ in range(_BURST)), end=True)
        call.flush()
        async with asyncio.timeout(4 * probe.timeout_s):
            got = await call.ends()
    status = call.trailers.get("grpc-status")
    if status != "0" or got != [b"4"] * _BURST:
        raise Failure(
            f"{len(got)} replies, then the status {status}", f"{_BURST} replies, then the status 0", call.sent
        )


@scenario("R-170", function=("square", "marks"))
async def refusal_waits_for_the_first_data(probe: Probe) -> None:
    """A StartFrame that cannot be accepted is refused once data comes, so that the caller's write still works."""
    watch = await probe.watch("square.calls")
    async with probe.call() as call:
        await call.start([_UNACCEPTABLE])
        await call.silent(0.2)
        await call.json(2)
        await call.fails(NAC, after=0)
    async with probe.call() as call:
        await call.start([_UNACCEPTABLE])
        await call.fails(NAC, after=0, timeout_s=1.0 + probe.timeout_s)
    await watch.stays("square.calls")
