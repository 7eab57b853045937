"""Who waits for whom: back-pressure, starvation, fairness, early headers, one call as one window."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from invoker_conformance.riff import frames
from invoker_conformance.riff.call import Call
from invoker_conformance.riff.frames import JSON
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import LIM
from invoker_conformance.target import Target, parse_addresses
from tests.conftest import SLOW
from tests.serving import Served, serving

# grpc.aio has one poller for all loops: what is late for a call that was cancelled must not find its loop closed. So
# these tests share a loop that lives as long as the session.
pytestmark = [pytest.mark.timeout(15), pytest.mark.asyncio(loop_scope="session")]

PADDED = frames.data(b"0" + b" " * (64 * 1024))
STALL_S = 0.3


@pytest.fixture(scope="module")
def named() -> Iterator[Served]:
    """The named functions, with a cap of unread frames that is soon reached."""
    with serving("functions.conformance", env={"INVOKER_HIGH_FRAMES": "64", "INVOKER_HARD_FRAMES": "2048"}) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="session")
async def probe(named: Served) -> AsyncIterator[Probe]:
    """The tools of a test."""
    target = Target(
        parse_addresses([named.grpc]), parse_addresses([]), timeout_s=3 * SLOW, message_bytes=4 * 1024 * 1024
    )
    yield Probe(target, "echo")
    await target.close()


async def test_R127_a_caller_that_does_not_read_suspends_the_function(probe: Probe) -> None:
    """An endless generator comes to a halt, and goes on without a gap when the caller reads (R-127)."""
    watch = await probe.watch("ticker.values")
    async with probe.call("ticker") as call:
        await call.start(inputs=[])
        made, before = await watch.grown("ticker.values"), -1
        while made == 0 or made != before:
            assert made < 64 * 1024, "64 MiB were made for a caller that does not read"
            await asyncio.sleep(STALL_S)
            before, made = made, await watch.grown("ticker.values")
        for number in range(made + 100):
            assert int(await call.value()) == number


async def test_R128_a_busy_function_stops_the_caller(probe: Probe) -> None:
    """While the function works on its first value, the caller's writes come to a halt long before 64 MiB (R-128)."""
    async with probe.call("delay") as call:
        await call.start()
        await call.json(600)
        writing = asyncio.create_task(_write(call, 1024))
        taken = -1
        while not writing.done() and taken != call._sent_count:
            taken = call._sent_count
            await asyncio.sleep(STALL_S)
        assert not writing.done(), "64 MiB were taken while the function was busy"
        call.cancel()
        await writing
        assert taken < 1024


async def _write(call: Call, count: int) -> None:
    for _ in range(count):
        if not await call.signal(PADDED):
            return


async def test_R129_reading_goes_on_while_the_function_starves(probe: Probe) -> None:
    """Far more values than the high-water mark lie in one input while the function waits for the other (R-129)."""
    async with probe.call("drain_second_first") as call:
        await call.start(inputs=["first", "second"])
        await call.json(*range(1000), index=0)
        await call.json(-1, index=1)
        assert await call.value() == -1
        await call.half_close()
        await call.gives(*range(1000))


async def test_R130_the_hard_cap_ends_a_starving_call(probe: Probe) -> None:
    """More unread values than the cap, for an input that the function does not read, are a limit exceeded (R-130)."""
    async with probe.call("drain_second_first") as call:
        await call.start(inputs=["first", "second"])
        for number in range(4096):
            if not await call.json(number, index=0):
                break
        await call.fails(LIM, after=0)
    await probe.survives()


async def test_R131_an_endless_output_does_not_starve_another(probe: Probe) -> None:
    """Five values of the second output arrive among those of a first one without end (R-131)."""
    async with probe.call("two_outputs") as call:
        await call.start([JSON, JSON], outputs=["left", "right"])
        await call.json([-1, 5])
        slow: list[int] = []
        for _ in range(5000):
            frame = await call.frame()
            if frame.resultIndex == 1:
                slow.append(call.json_of(frame))
            if len(slow) == 5:
                break
    assert slow == [0, 1, 2, 3, 4]


async def test_R133_headers_come_with_the_accepted_start(probe: Probe) -> None:
    """An aggregator that has nothing to say yet has answered with headers already (R-133)."""
    async with probe.call("total") as call:
        await call.start()
        await call.headers_come()


async def test_R159_one_call_is_one_window(probe: Probe) -> None:
    """Thousands of values in several bursts are one call of the function and one result (R-159)."""
    watch = await probe.watch("total.calls", "total.completed")
    async with probe.call("total") as call:
        await call.start()
        for _ in range(4):
            await call.json(*range(500))
            await watch.stays("total.calls", by=1)
            await watch.stays("total.completed")
        await call.half_close()
        await call.gives(4 * sum(range(500)))
    await watch.stays("total.calls", by=1)
