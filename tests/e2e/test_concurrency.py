"""Calls over real sockets: when they start, how they end, what they do to each other, and who waits for whom."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from invoker_conformance.riff.frames import JSON
from invoker_conformance.riff.probe import Probe
from invoker_conformance.riff.rules import PV, UE
from invoker_conformance.target import Target, parse_addresses
from tests.conftest import SLOW
from tests.e2e.process import started
from tests.serving import Served, serving

# grpc.aio has one poller for all loops: what is late for a call that was cancelled must not find its loop closed. So
# these tests share a loop that lives as long as the session.
pytestmark = [pytest.mark.timeout(15), pytest.mark.asyncio(loop_scope="session")]

STUBBORN = """
import sys, threading

released = threading.Event()

def stubborn(x: int) -> int:
    if x == 1:
        print("deaf", file=sys.stderr, flush=True)
        released.wait()
    elif x == 2:
        released.set()
    return x
"""


@pytest.fixture(scope="module")
def named() -> Iterator[Served]:
    """The named functions, with a cap of unread frames that is soon reached."""
    with serving("functions.conformance", env={"INVOKER_HIGH_FRAMES": "64", "INVOKER_HARD_FRAMES": "2048"}) as served:
        yield served


@asynccontextmanager
async def probe_of(address: str) -> AsyncIterator[Probe]:
    """The tools of a test for a server."""
    target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=3 * SLOW, message_bytes=4 * 1024 * 1024)
    try:
        yield Probe(target, "echo")
    finally:
        await target.close()


@pytest_asyncio.fixture(loop_scope="session")
async def probe(named: Served) -> AsyncIterator[Probe]:
    """The tools of a test."""
    async with probe_of(named.grpc) as made:
        yield made


async def test_R049_a_start_frame_and_a_half_close_are_a_call(probe: Probe) -> None:
    """No input at all: a mapped function gives nothing, an aggregator the sum of nothing (R-049)."""
    for function, values in (("square", ()), ("total", (0,))):
        async with probe.call(function) as call:
            await call.start()
            await call.half_close()
            await call.gives(*values)


async def test_R050_a_start_frame_alone_starts_the_function(probe: Probe) -> None:
    """Before any input and any half-close, a greeting comes, and a source gives all it has (R-050)."""
    async with probe.call("greeting") as call:
        await call.start()
        assert await call.value() == "hello"
    async with probe.call("source") as call:
        await call.start(inputs=[])
        await call.gives(1, 2, 3)


async def test_R051_nothing_comes_before_the_start_frame(probe: Probe) -> None:
    """A source is silent until it is started, and so is a refused call (R-051)."""
    async with probe.call("source") as call:
        await call.silent(0.2)
        await call.start(inputs=[])
        await call.gives(1, 2, 3)
    async with probe.call("source") as call:
        await call.json(1)
        await call.fails(PV, after=0)


async def test_R109_a_cancelled_aggregator_never_completes(probe: Probe) -> None:
    """In twenty rounds of start, values, cancel, no sum is ever made: the cancel is no end of the input (R-109)."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    for number in range(20):
        async with probe.call("total") as call:
            await call.start()
            await call.json(1, 2, 3)
            await watch.reaches("total.calls", number + 1, within_s=SLOW)
            call.cancel()
    await watch.reaches("total.failed", 20, within_s=SLOW)
    await watch.stays("total.completed")


async def test_R109_a_half_close_completes_inputs_that_got_nothing(probe: Probe) -> None:
    """Two inputs, values for one: both end with the request stream (R-109)."""
    async with probe.call("drain_second_first") as call:
        await call.start(inputs=["first", "second"])
        await call.json(1, 2, index=0)
        await call.half_close()
        await call.gives(1, 2)


async def test_R112_an_error_on_one_output_ends_the_call(probe: Probe) -> None:
    """The other output is without end; it is closed, and the error is the status (R-112)."""
    watch = await probe.watch("two_outputs.calls", "two_outputs.closed")
    async with probe.call("two_outputs") as call:
        await call.start([JSON, JSON], outputs=["left", "right"])
        await call.json([-1, -2])
        await call.fails(UE, "boom")
    await watch.reaches("two_outputs.closed", "two_outputs.calls", within_s=SLOW)


async def test_R113_values_before_the_error_are_delivered(probe: Probe) -> None:
    """Three values, then the status (R-113)."""
    async with probe.call("boom") as call:
        await call.start(inputs=[])
        got = await call.fails(UE, "boom", after=3)
    assert [frame.payload for frame in got] == [b"1", b"2", b"3"]


async def test_R114_a_function_may_end_before_its_input(probe: Probe) -> None:
    """It returns after two values: OK at once, without a half-close, and the rest is discarded (R-114)."""
    async with probe.call("early") as call:
        await call.start()
        await call.json(*range(100))
        await call.gives(0, 1)


@pytest.mark.parametrize(
    ("function", "first", "ending"),
    [("ticker", None, "closed"), ("emit", -1, "failed"), ("total", 1, "failed"), ("delay", 600, "failed")],
)
async def test_R115_a_cancel_stops_the_function(probe: Probe, function: str, first: int | None, ending: str) -> None:
    """Generators are closed, a blocked read wakes with an error, an async body is cancelled; `finally` runs (R-115)."""
    watch = await probe.watch(f"{function}.calls", f"{function}.{ending}", f"{function}.completed")
    async with probe.call(function) as call:
        await call.start(inputs=[] if first is None else ["in"])
        if first is not None:
            await call.json(first)
        await watch.reaches(f"{function}.calls", 1, within_s=SLOW)
        call.cancel()
        await watch.reaches(f"{function}.{ending}", 1, within_s=SLOW)
    await watch.stays(f"{function}.completed")


async def test_R116_a_function_that_ignores_its_cancel_harms_nobody(tmp_path: Path) -> None:
    """It is logged and counted, others are served meanwhile, and its late output goes nowhere (R-116)."""
    (tmp_path / "deaf.py").write_text(STUBBORN)
    loop = asyncio.get_running_loop()

    async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
        return await loop.run_in_executor(pool, function, *args)

    with (
        ThreadPoolExecutor(1) as pool,
        started("deaf:stubborn", cwd=tmp_path, env={"INVOKER_GRACE_S": "0.05"}) as process,
    ):
        address, http = process.ready()
        async with probe_of(address) as probe:
            async with probe.call("stubborn") as call:
                await call.start()
                await call.json(1)
                await in_thread(process.wait_for, "deaf")
                call.cancel()
            await in_thread(process.wait_for, "ignores that its invocation ended")
            shown = await in_thread(lambda: urllib.request.urlopen(f"http://{http}/metrics").read().decode())
            assert [line for line in shown.splitlines() if "stuck" in line and line.endswith(" 1.0")], shown
            for value in (3, 2):
                async with probe.call("stubborn") as call:
                    await call.start()
                    await call.json(value)
                    await call.half_close()
                    await call.gives(value)


@pytest.mark.parametrize("message", [b"\xff\xff\xff", b"\x12\x06\x0a\x011\x12\x01\xff"], ids=["bytes", "utf-8"])
async def test_R120_what_is_no_protobuf_fails_its_own_call(probe: Probe, message: bytes) -> None:
    """Undecodable bytes and invalid UTF-8 are a protocol violation of this call; its neighbour goes on (R-120)."""
    async with probe.call() as neighbour, probe.call() as call:
        await neighbour.start()
        await neighbour.json("before")
        await call.start()
        await call.raw(message)
        await call.fails(PV, after=0)
        await neighbour.json("after")
        await neighbour.half_close()
        await neighbour.gives("before", "after")


async def test_R121_a_frame_above_the_limit_is_resource_exhausted(probe: Probe) -> None:
    """The function sees an error, no end of its input, and the server goes on (R-121)."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    async with probe.call("total") as call:
        await call.start()
        await watch.reaches("total.calls", 1, within_s=SLOW)
        await call.data(b"1" + b" " * (5 * 1024 * 1024))
        await call.has_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
    await watch.reaches("total.failed", 1, within_s=SLOW)
    await watch.stays("total.completed")
    await probe.survives()


async def test_R122_an_output_above_the_callers_limit_ends_the_generator(probe: Probe) -> None:
    """The caller's gRPC refuses the value; the endless generator behind it is closed, others are served (R-122)."""
    watch = await probe.watch("ticker.calls", "ticker.closed")
    address = str(probe.target.grpc_at.of("ticker"))
    channel = probe.target.new_channel(address, ("grpc.max_receive_message_length", 512))
    try:
        async with probe.call("ticker", channel=channel) as call:
            await call.start(inputs=[])
            await call.has_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
            await watch.reaches("ticker.calls", 1, within_s=SLOW)
            await watch.reaches("ticker.closed", 1, within_s=SLOW)
    finally:
        await channel.close()
    await probe.survives()


async def test_R124_a_deadline_is_like_a_cancel(probe: Probe) -> None:
    """A function that waits for input is woken with an error, no end (R-124)."""
    watch = await probe.watch("total.calls", "total.failed", "total.completed")
    async with probe.call("total", deadline_s=0.5) as call:
        await call.start()
        await call.json(1, 2)
        await call.has_code(grpc.StatusCode.DEADLINE_EXCEEDED)
    await watch.reaches("total.failed", "total.calls", within_s=SLOW)
    await watch.stays("total.completed")


async def test_R125_calls_run_side_by_side(probe: Probe) -> None:
    """Twenty calls are open at once, fed in turn, ended in reverse order; none sees another's values (R-125, R-012)."""
    async with AsyncExitStack() as stack:
        calls = [await stack.enter_async_context(probe.call("total")) for _ in range(20)]
        for call in calls:
            await call.start()
        for number in range(5):
            for own, call in enumerate(calls):
                await call.json(own * 1000 + number)
        for own, call in reversed(list(enumerate(calls))):
            await call.half_close()
            await call.gives(own * 5000 + 10)


async def test_R012_calls_share_no_names(probe: Probe) -> None:
    """Each of two calls sees the names of its own StartFrame and the media types it asked for (R-012)."""
    async with probe.call("names") as first, probe.call("names") as second:
        for call, own in ((first, "a"), (second, "b")):
            await call.start(inputs=[f"in-{own}"], outputs=[f"out-{own}"])
        for call, own in ((second, "b"), (first, "a")):
            await call.json(None)
            await call.half_close()
            await call.gives({"inputs": [f"in-{own}"], "outputs": [f"out-{own}"], "accepts": [JSON]})


@pytest.mark.parametrize("kind", ["error", "exit", "interrupt", "stop", "close"])
async def test_R013_a_failed_call_harms_nobody(probe: Probe, kind: str) -> None:
    """Whatever a function raises fails its own call; the one beside it and the next one work (R-013, R-123)."""
    async with probe.call("total") as neighbour, probe.call("fail") as call:
        await neighbour.start()
        await neighbour.json(20)
        await call.start()
        await call.json({"kind": kind, "text": "left"})
        await call.fails(UE, after=0)
        await neighbour.json(22)
        await neighbour.half_close()
        await neighbour.gives(42)
    await probe.survives()


async def test_R126_input_does_not_wait_for_output(probe: Probe) -> None:
    """A hundred values go in before the first comes out, and the call is still open for more (R-126)."""
    async with probe.call("hundred") as call:
        await call.start()
        for _ in range(2):
            await call.json(*range(100))
            assert await call.value() == 4950
