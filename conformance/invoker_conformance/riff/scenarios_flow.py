"""Concurrency, flow control and limits. Catalogue 2.9."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc

from invoker_conformance.riff import frames
from invoker_conformance.riff.call import Call
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import LIM
from invoker_conformance.scenario import scenario

_FRAMES = 10_000
_MIB = 1024 * 1024
_LONG_S = 60.0
_STALL_S = 0.5


@scenario("RT-42", "R-063", "R-062", "R-126", function="pairs")
async def interleaved_10k(probe: Probe) -> None:
    """10,000 frames alternate over two inputs; the order of each is exact."""
    async with probe.call() as call:
        await call.start(inputs=["left", "right"])
        await _both(probe, call, [[number, -number] for number in range(_FRAMES // 2)])


@scenario("RT-43", "R-129", function="drain_second_first")
async def drain_second_input_first(probe: Probe) -> None:
    """10,000 frames alternate, and the function reads all of input 1 before input 0: no deadlock."""
    expected = [-number for number in range(_FRAMES // 2)] + list(range(_FRAMES // 2))
    async with probe.call() as call:
        await call.start(inputs=["first", "second"])
        await _both(probe, call, expected)


async def _both(probe: Probe, call: Call, expected: Sequence[object]) -> None:
    await asyncio.gather(_interleave(call), _receive(call, expected, probe.timeout_s))


async def _interleave(call: Call) -> None:
    for number in range(_FRAMES // 2):
        await call.data(b"%d" % number, index=0)
        await call.data(b"%d" % -number, index=1)
    await call.half_close()


async def _receive(call: Call, expected: Sequence[object], timeout_s: float) -> None:
    got, ending = await call.rest(timeout_s=2 * timeout_s)
    if ending.code is not grpc.StatusCode.OK or len(got) != len(expected):
        raise call.failure(f"{len(got)} frames, then {ending}", f"{len(expected)} frames, then OK")
    for at, (frame, value) in enumerate(zip(got, expected, strict=True)):
        if (met := call.json_of(frame)) != value:
            raise call.failure(f"{met} as frame {at}", f"{value}")


@scenario("R-159", "R-029", "R-063", function=("total", "marks"))
async def one_call_is_one_window(probe: Probe) -> None:
    """5,000 frames over two seconds are one window: one call of the function and one result."""
    watch = await probe.watch("total.calls")
    async with probe.call() as call:
        await call.start()
        for _ in range(4):
            await call.json(*range(1250))
            await asyncio.sleep(0.5)
        await call.half_close()
        await call.gives(4 * sum(range(1250)))
    await watch.stays("total.calls", by=1)


@scenario("RT-44", "R-130", "R-013", function="drain_second_first")
async def starvation_hard_cap(probe: Probe) -> None:
    """A limit ends the call when frames without end come for an input that the function does not read."""
    padded = b"0" + b" " * (64 * 1024)
    async with probe.call() as call:
        await call.start(inputs=["first", "second"])
        for _ in range(4096):
            if not await call.data(padded, index=0):
                break
        else:
            raise call.failure("256 MiB taken", f"{LIM}")
        await call.fails(LIM, after=0)
    await probe.survives()


@scenario("RT-45", "R-127", function=("ticker", "source", "marks"))
async def slow_consumer_of_endless_output(probe: Probe) -> None:
    """While the caller does not read, the function is suspended; it continues without a gap when the caller reads."""
    await probe.needs_sources()
    watch = await probe.watch("ticker.values", "ticker.calls", "ticker.closed")
    async with probe.call() as call:
        await call.start(inputs=[])
        for number in range(5):
            await _tick(call, number)
        emitted = await _stalls(probe, call)
        for number in range(5, emitted + 100):
            await _tick(call, number)
    await watch.reaches("ticker.closed", "ticker.calls")


async def _tick(call: Call, number: int) -> None:
    if (value := await call.value()) != f"{number:01024d}":
        raise call.failure(f"the value {value!r:.60}", f"{number} in 1024 digits")


async def _stalls(probe: Probe, call: Call) -> int:
    """Wait until the producer stops, and return the smallest number of unread values."""
    watch = await probe.watch("ticker.values")
    before = -1
    until = probe.clock() + 15.0
    while (now := await watch.grown("ticker.values")) != before:
        if now > 64 * 1024 or probe.clock() > until:
            raise call.failure(f"{now} values of 1 kB made for a caller that does not read", "a suspended function")
        before = now
        await asyncio.sleep(_STALL_S)
    return now


@scenario("RT-46", "R-128", function="delay")
async def slow_function_fast_caller(probe: Probe) -> None:
    """While the function is busy with its first value, the caller's writes block."""
    padded = frames.data(b"0" + b" " * (64 * 1024))
    async with probe.call() as call:
        await call.start()
        await call.json(_LONG_S)
        for _ in range(1024):
            writing = asyncio.ensure_future(call.signal(padded))
            done, _ = await asyncio.wait({writing}, timeout=_STALL_S)
            if not done:
                call.cancel()
                await writing
                return
            if not writing.result():
                raise call.failure("the end of the call", "that writes come to a halt")
        raise call.failure("64 MiB taken while the function was busy", "that writes come to a halt")


@scenario("RT-70", "R-125", "R-012", function="echo")
async def hundred_parallel_calls(probe: Probe) -> None:
    """A hundred calls at the same time each get back their own values."""

    async def one(number: int) -> None:
        async with probe.call() as call:
            values = [f"{number}-{part}" for part in range(5)]
            await call.start(inputs=[f"in-{number}"], outputs=[f"out-{number}"])
            for value in values:
                await call.json(value)
                await asyncio.sleep(0)
            await call.half_close()
            await call.gives(*values)

    async with asyncio.TaskGroup() as group:
        for number in range(100):
            group.create_task(one(number))


@scenario("R-125", "R-012", function="total")
async def interleaved_aggregators(probe: Probe) -> None:
    """Twenty aggregators are open at once, fed in turn, and ended in reverse order; each sums its own."""
    calls: list[Call] = []
    await _nested(probe, calls, 20)


async def _nested(probe: Probe, calls: list[Call], depth: int) -> None:
    if depth:
        async with probe.call() as call:
            calls.append(call)
            await call.start()
            await _nested(probe, calls, depth - 1)
        return
    for number in range(5):
        for own, call in enumerate(calls):
            await call.json(own * 1000 + number)
    for own, call in reversed(list(enumerate(calls))):
        await call.half_close()
        await call.gives(own * 5000 + 10)


@scenario("RT-71", "R-036", "R-125", function=("sleeper", "square"))
async def blocking_function(probe: Probe) -> None:
    """While one call blocks for 2 s, another one answers within 1 s; the blocked one still gives its value."""
    async with probe.call() as sleeping, probe.call("square") as quick:
        await sleeping.start()
        await sleeping.json(2.0)
        await asyncio.sleep(0.1)
        clock = probe.clock()
        await quick.all(3)
        await quick.gives(9)
        if (took := probe.clock() - clock) > 1.0:
            raise quick.failure(f"the result after {took:.1f} s", "the result within 1 s")
        await sleeping.half_close()
        await sleeping.gives(2.0)


@scenario("R-133", function="total")
async def response_headers_come_early(probe: Probe) -> None:
    """Response headers come once the StartFrame is accepted, before any frame."""
    async with probe.call() as call:
        await call.start()
        await call.headers_come()
