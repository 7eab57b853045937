"""Scenarios of reports and their aggregation: docs/reference/federated.md 3.5."""

from __future__ import annotations

import asyncio
from base64 import b64decode

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import scenario

_AHEAD = 16
_MEDIA_TYPES = ("application/octet-stream", "application/vnd.fcp.checkpoint")


@scenario("FT-46", "F-079", "F-080", "F-062", function="told")
async def frames_of_a_round(fleet: Fleet) -> None:
    """Each report is a frame, in order, with headers of the round and none of its device."""
    stats = Packed()
    stats.Pack(pb.ClientExecutionStats(duration=Duration(seconds=1, nanos=500_000_000)))
    async with fleet.joined(2) as (first, second):
        await first.report(b"one", events=[stats])
        await first.thanked()
        await second.report(b"")
        await second.thanked()
    frames = await fleet.frames(count=2)
    if [b64decode(one["payload"]) for one in frames] != [b"one", b""]:
        raise fleet.failure(f"{frames}", "the reports in their order (F-079)")
    for ordinal, frame in enumerate(frames):
        headers = dict(frame["headers"])
        met = (headers.pop("population", ""), headers.pop("task", ""), headers.pop("ordinal", ""))
        if met != ("told", "frames", str(ordinal)) or frame["type"] not in _MEDIA_TYPES:
            raise fleet.failure(f"{frame}", f"a frame of told, frames, {ordinal} (F-080)")
        if not headers.pop("round", "").isdigit():
            raise fleet.failure(f"{frame}", "the number of the round (F-080)")
        if headers.pop("duration_ms", "") != ("1500", "")[ordinal] or headers:
            raise fleet.failure(f"{frame}", "duration_ms of the first, and no other header (F-080)")


@scenario("FT-48", "F-082", function="moody")
async def functions_that_fail(fleet: Fleet) -> None:
    """When a function raises, gives two checkpoints or none, or takes too long, the old checkpoint stays."""
    before = await fleet.total(count=2)
    for mood in (b"raise", b"twice", b"none", b"sleep"):
        async with fleet.joined(2) as (first, second):
            await first.report(b"1000")
            await first.thanked()
            await second.report(mood)
            end = await second.answer()
            if end not in (None, StatusCode.ABORTED):
                raise second.failure(f"{end}", "an answer, or ABORTED")
        await fleet.is_total(before, count=2)
    async with fleet.joined(2) as devices:
        for device in devices:
            await device.report(b"1")
        await asyncio.gather(*(device.thanked() for device in devices))
    await fleet.is_total(before + 2, count=2)


@scenario("FT-48", "F-084", function="moody")
async def function_that_ends_early(fleet: Fleet) -> None:
    """When a function ends early, later reports get ABORTED, and too few reports make no checkpoint."""
    before = await fleet.total(count=2)
    async with fleet.joined(2) as (first, second):
        await first.report(b"early")
        await first.answer()
        await second.ends(StatusCode.ABORTED)
    await fleet.is_total(before, count=2)


@scenario("FT-47", "F-081", function="slow")
async def function_that_is_slow(fleet: Fleet) -> None:
    """Of 24 reports at most 16 and those that the function reads are answered at once.

    The others wait, and all count.
    """
    before = await fleet.total(count=24)
    async with fleet.joined(24) as devices:
        for device in devices:
            await device.report(b"1")
        began = fleet.clock()
        times = []

        async def one(number: int) -> None:
            await devices[number].thanked(2 * fleet.timeout_s)
            times.append(fleet.clock() - began)

        await asyncio.gather(*map(one, range(24)))
    # The function takes a tenth of a second for each report that was ahead when the last one was answered.
    if max(times) < (24 - _AHEAD - 4) * 0.1:
        raise fleet.failure(f"the last answer after {max(times):.2f} s", "that answers wait for the function (F-081)")
    await fleet.is_total(before + 24, count=24)


@scenario("FT-49", "F-060", "F-051", function="told")
async def plan_that_failed(fleet: Fleet) -> None:
    """A report with the status 13 is answered and not aggregated, so that its round has too few reports."""
    before = await fleet.frames(count=2)
    async with fleet.joined(2) as (first, second):
        await first.report(b"not this", 13)
        await first.thanked()
        await second.report(b"nor this")
        await second.answer()
    if await fleet.frames(count=2) != before:
        raise fleet.failure("another checkpoint", "the old one: two reports are needed")
