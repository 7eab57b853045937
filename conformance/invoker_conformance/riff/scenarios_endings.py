"""The end of calls: functions that raise or return early, and limits. Catalogue 2.8."""

from __future__ import annotations

import asyncio
import re

import grpc

from invoker_conformance.riff.frames import OCTETS
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import UE
from invoker_conformance.scenario import Failure, breaking, scenario


@scenario("RT-51", "R-113", "R-117", "R-119", function=("boom", "source"))
async def raises_after_three(probe: Probe) -> None:
    """Three values come, then the status with type and text of the exception."""
    await probe.needs_sources()
    async with probe.call() as call:
        await call.all(inputs=[])
        got = [call.json_of(frame) for frame in await call.fails(UE, "boom", after=3)]
        if got != [1, 2, 3]:
            raise call.failure(f"{got}", "[1, 2, 3]")


@scenario("R-117", "R-013", function="fail")
async def error_text_is_clean(probe: Probe) -> None:
    """The detail holds the text of the exception, and neither a traceback nor a path."""
    for text in ("plain", "ünï 日本", "two\nlines\tand a tab", "100% of it", ""):
        await probe.call_fails(UE, *re.findall(r"\w+", text), sent=[{"kind": "error", "text": text}])
    await probe.survives()


@scenario("RT-68", "R-118", function="fail")
async def error_text_of_20_kb(probe: Probe) -> None:
    """A long text is truncated, on a character boundary, and keeps its code."""
    for letter in ("x", "日", "%", "\n"):
        async with probe.call() as call:
            await call.start()
            await call.json({"kind": "error", "text": letter * 20_000})
            _, ending = await call.rest()
            if not UE.matches(ending.code, ending.detail) or "\ufffd" in ending.detail:
                raise call.failure(str(ending)[:300], f"{UE} with a truncated text")


@scenario("RT-69", "R-123", "R-013", function="fail")
async def exit_in_a_function(probe: Probe) -> None:
    """Exceptions that would end a process or a loop only fail the call."""
    for kind in ("exit", "interrupt", "stop", "close"):
        await probe.call_fails(UE, sent=[{"kind": kind, "text": "left"}])
        await probe.survives()


@scenario("RT-57", "R-114", function="early")
async def function_returns_early(probe: Probe) -> None:
    """When the function returns, the call ends with OK at once, though the caller keeps writing."""
    async with probe.call() as call:
        await call.start()
        await call.json(*range(5))
        got = [call.json_of(await call.frame()) for _ in range(2)]
        for number in range(200):
            if not await call.json(number):
                break
        await call.gives()
        if got != [0, 1]:
            raise call.failure(f"{got}", "[0, 1]")


@scenario("RT-61", "R-121", "R-110", "R-013", function=("total", "marks"))
async def huge_frame(probe: Probe) -> None:
    """A frame above the size limit is RESOURCE_EXHAUSTED; the function gets an error instead of an end of input."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    async with probe.call() as call:
        await call.start()
        await call.json(1)
        await call.data(b"1" + b" " * (probe.target.message_bytes + 1024 * 1024))
        got, ending = await call.rest()
        if ending.code is not grpc.StatusCode.RESOURCE_EXHAUSTED or got:
            raise call.failure(f"{len(got)} frames, then {ending}", "RESOURCE_EXHAUSTED")
    with breaking("R-110"):
        await watch.is_cut_off("total")
    await probe.survives()


@scenario("R-121", function="octets")
async def frame_below_the_limit(probe: Probe) -> None:
    """A frame just below the size limit passes both ways."""
    payload = bytes(probe.target.message_bytes - 1024)
    async with probe.call() as call:
        await call.one(payload, OCTETS, accept=OCTETS)
        await call.succeeds(payload)


@scenario("R-122", "R-013", function="octets")
async def output_above_the_callers_limit(probe: Probe) -> None:
    """A caller that cannot take a large output sees RESOURCE_EXHAUSTED; the server continues."""
    address = str(probe.target.grpc_at.of(probe.function))
    channel = probe.target.new_channel(address, ("grpc.max_receive_message_length", 64 * 1024))
    try:
        async with probe.call(channel=channel) as call:
            await call.start([OCTETS])
            await call.data(bytes(1024 * 1024), OCTETS)
            await call.has_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
    finally:
        await channel.close()
    await probe.survives()


@scenario("RT-50", "R-124", "R-115", function=("emit", "marks"))
async def deadline(probe: Probe) -> None:
    """A deadline of 200 ms ends an endless function; its clean-up runs within 1 s."""
    watch = await probe.watch("emit.calls", "emit.closed")
    async with probe.call(deadline_s=0.2) as call:
        await call.start()
        await call.json(-1)
        await call.has_code(grpc.StatusCode.DEADLINE_EXCEEDED)
        with breaking("R-115"):
            await watch.reaches("emit.closed", "emit.calls", within_s=1.0)


@scenario("R-124", "R-110", function=("total", "marks"))
async def deadline_while_reading(probe: Probe) -> None:
    """A deadline wakes a function that waits for input, with an error instead of an end of input."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    async with probe.call(deadline_s=0.2) as call:
        await call.start()
        await call.json(1, 2)
        await call.has_code(grpc.StatusCode.DEADLINE_EXCEEDED)
    with breaking("R-110"):
        await watch.is_cut_off("total")


@scenario("RT-47", "R-115", function=("emit", "marks"))
async def cancel_mid_stream(probe: Probe) -> None:
    """A cancel after ten frames stops an endless function; its clean-up runs within 1 s."""
    watch = await probe.watch("emit.calls", "emit.closed", "emit.values")
    async with probe.call() as call:
        await call.start()
        await call.json(-1)
        got = [call.json_of(await call.frame()) for _ in range(10)]
        if got != list(range(10)):
            raise call.failure(f"{got}", "0 to 9")
        call.cancel()
        await watch.reaches("emit.closed", 1, within_s=1.0)
        emitted = await watch.grown("emit.values")
        await asyncio.sleep(0.2)
        await watch.stays("emit.values", by=emitted)


@scenario("RT-48", "R-109", "R-110", "R-115", function=("total", "marks"))
async def cancel_is_not_completion(probe: Probe) -> None:
    """An aggregator never completes when its call is cancelled, fifty times over: its inputs raise an error."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    for number in range(50):
        async with probe.call() as call:
            await call.start()
            await call.json(1, 2, 3)
            if number % 10 == 9:  # a call that is cancelled before its function starts is not counted
                await watch.reaches("total.calls", number // 10 + 1)
            call.cancel()
    await asyncio.sleep(0.1)
    with breaking("R-109"):
        await watch.stays("total.completed")
    with breaking("R-110"):
        await watch.reaches("total.failed", "total.calls")


@scenario("R-109", "R-110", function=("total", "marks"))
async def cancel_after_a_while_is_not_completion(probe: Probe) -> None:
    """A cancel that finds the function waiting for input wakes it with an error, never with an end of input."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    for number in range(1, 11):
        async with probe.call() as call:
            await call.start()
            await call.json(1, 2, 3)
            # a call that is cancelled before its function starts is not counted
            await watch.reaches("total.calls", number)
            await asyncio.sleep(0.02)
            call.cancel()
    with breaking("R-110"):
        await watch.reaches("total.failed", "total.calls")
    with breaking("R-109"):
        await watch.stays("total.completed")


@scenario("RT-49", "R-109", "R-110", "R-115", function=("total", "emit", "marks"))
async def connection_drop(probe: Probe) -> None:
    """A lost connection is an error for the inputs and stops an endless function, like a cancel."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed", "emit.calls", "emit.closed")
    for name, values in (("total", (1, 2, 3)), ("emit", (-1,))):
        async with probe.severed(name) as (channel, sever), probe.call(name, channel=channel) as call:
            await call.start()
            await call.json(*values)
            await watch.reaches(f"{name}.calls", 1)
            sever()
            _, ending = await call.rest()
            if ending.code is not grpc.StatusCode.UNAVAILABLE:
                raise Failure(f"{ending} on a cut connection", "UNAVAILABLE", call.sent)
    with breaking("R-109"):
        await watch.stays("total.completed")
    with breaking("R-110"):
        await watch.reaches("total.failed", "total.calls")
    with breaking("R-115"):
        await watch.reaches("emit.closed", "emit.calls")


@scenario("R-116", "R-036", "R-013", function=("sleeper", "square"))
async def deaf_function_blocks_nobody(probe: Probe) -> None:
    """A blocking function that ignores its cancel does not keep other calls waiting."""
    async with probe.call() as call:
        await call.start()
        await call.json(2.0)
        await asyncio.sleep(0.1)
        call.cancel()
    clock = probe.clock()
    async with probe.call("square") as other:
        await other.all(3)
        await other.gives(9)
    if (took := probe.clock() - clock) > 1.0:
        raise other.failure(f"the result after {took:.1f} s", "the result within 1 s")


@scenario("RT-86", "R-115", "R-013", function=("emit", "marks"))
async def mixed_calls_leave_nothing_behind(probe: Probe) -> None:
    """200 mixed calls (complete, cancelled, failed, left early): every call of the function has ended."""
    watch = await probe.watch("emit.calls", "emit.closed")
    for number in range(200):
        async with probe.call() as call:
            await call.start()
            match number % 4:
                case 0:
                    await call.json(2)
                    await call.gives(0, 1)
                case 1:
                    await call.json(-1)
                    await call.frame()
                    call.cancel()
                case 2:
                    await call.data(b"{")
                    await call.rest()
                case 3:
                    await call.json(-1)
    with breaking("R-013"):
        async with probe.call() as call:
            await call.start()
            await call.json(1)
            await call.gives(0)
    with breaking("R-115"):
        await watch.reaches("emit.closed", "emit.calls")
