"""The fast transport as a server: who leads, threads and slots, starting and stopping, what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from unittest.mock import patch

import grpc
import pytest

from invoker.errors import ShuttingDown
from invoker.transports.tls import TlsFiles
from tests.conftest import SLOW
from tests.transports.riff import FAST, PATH, Riff, data, eventually, form, start
from tests.transports.test_tls import Pem


@pytest.fixture(params=FAST)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def gen(xs: Iterator[bytes]) -> Iterator[bytes]:
    yield from xs


async def agen(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for x in xs:
        yield x


def named(name: str) -> tuple[tuple[str, str]]:
    return (("invoker-function", name),)


def test_short_calls_do_not_wait_for_one_that_sleeps():
    """The thread that leads serves short calls itself; one that blocks in user code gives the lead away."""
    asleep, wake = threading.Event(), threading.Event()

    def block(xs: Iterator[bytes]) -> Iterator[bytes]:
        asleep.set()
        wake.wait(10)
        yield b""

    with Riff("direct", gen, block) as riff:
        for _ in range(5):
            for _ in range(10):
                assert riff.call(b"x", metadata=named("gen")).rest() == [b"x"]
            blocked = riff.call(metadata=named("block"))
            assert asleep.wait(2 * SLOW)
            waits = []
            for _ in range(20):
                began = time.monotonic()
                assert riff.call(b"x", metadata=named("gen")).rest() == [b"x"]
                waits.append(time.monotonic() - began)
            assert statistics.median(waits) < 0.05 * SLOW
            assert max(waits) < 5  # a busy machine may pause any of them; the sleeper sleeps for ten
            wake.set()
            assert blocked.rest() == [b""]
            asleep.clear()
            wake.clear()


def test_a_call_while_the_leader_sleeps_is_accepted_within_a_few_beats():
    """Also when it arrives in the very moment in which the leader entered user code."""

    def nap(x: bytes) -> bytes:
        time.sleep(float(x))
        return x

    with Riff("direct", nap) as riff:
        for _ in range(10):
            assert riff.call(b"0").rest() == [b"0"]
            long = riff.call(b"0.3", timeout=5)
            began = time.monotonic()
            assert riff.call(b"0").rest() == [b"0"]
            assert time.monotonic() - began < 0.05 * SLOW
            long.cancel()


def test_R132_calls_beyond_the_threads_are_refused_and_served_once_there_is_room():
    """RESOURCE_EXHAUSTED while all threads are busy; a slot that is free again serves."""
    with Riff("direct", gen, threads=3) as riff:
        held = [riff.call(b"x") for _ in range(3)]
        assert [one.read() for one in held] == [b"x"] * 3
        _, code, text = riff.call(b"x").ending()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "all 3 threads" in text
        assert [one.rest() for one in held] == [[]] * 3
        assert eventually(lambda: riff.driver.threads.busy == 0)
        assert riff.call(b"y").rest() == [b"y"]


def test_a_slot_is_free_before_its_peer_knows():
    """Whoever makes one call after the other never finds its own last one in the way."""
    with Riff("direct", gen, threads=1) as riff:
        for _ in range(300):
            assert riff.call(b"x").rest() == [b"x"]


def test_R015_tls(kind, tmp_path: Path):
    """A call over TLS."""
    pem = Pem(tmp_path)
    files = TlsFiles.of(pem.cert, pem.key)
    assert files is not None
    with Riff(kind, form(kind, gen, agen), transport={"credentials": files.grpc_credentials()}) as riff:
        trusted = grpc.ssl_channel_credentials(Path(pem.ca).read_bytes())
        with grpc.secure_channel(f"localhost:{riff.port}", trusted, [("grpc.enable_http_proxy", 0)]) as channel:
            assert riff.call(b"x", b"y", channel=channel).rest() == [b"x", b"y"]


def test_stop_lets_running_calls_end(kind):
    """With grace: the call ends well, then the transport is shut."""
    with Riff(kind, form(kind, gen, agen)) as riff:
        call = riff.call(b"x")
        assert call.read() == b"x"
        stopping = threading.Thread(target=riff.close, args=(5,), name="Thread-stop")
        stopping.start()
        call.data(b"y")
        assert call.rest() == [b"y"]
        stopping.join(3)
        assert not stopping.is_alive()
        assert riff.call(b"z").code is grpc.StatusCode.UNAVAILABLE


def test_stop_cuts_what_does_not_end(kind):
    """Without grace: the peer hears of it at once, the function is closed."""
    left = threading.Event()

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from xs
        finally:
            left.set()

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for x in xs:
                yield x
        finally:
            left.set()

    with patch("invoker.transports.grpc.fast._CUT_S", 3600), Riff(kind, form(kind, sync, asyn)) as riff:
        call = riff.call(b"x")
        assert call.read() == b"x"
        riff.close(0)  # which fails if the transport waits for the call
        assert call.code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
        assert left.is_set()


def test_R025_a_drain_that_takes_too_long_tells_the_peer(kind):
    """UNAVAILABLE and the reason, whatever the function waits for."""
    with Riff(kind, form(kind, gen, agen)) as riff:
        call = riff.call(b"x")
        assert call.read() == b"x"
        assert riff.run(riff.driver.drain(0.05)) is False
        _, code, text = call.ending()
        assert code is grpc.StatusCode.UNAVAILABLE
        assert text.startswith(ShuttingDown.prefix)


def test_stop_while_calls_arrive(kind):
    """Each of them ends well or is told that the transport is shut; the transport stops."""
    codes, goes_on = [], threading.Event()
    goes_on.set()

    with Riff(kind, form(kind, gen, agen)) as riff:
        stub = riff.channel.stream_stream(PATH)

        def press() -> None:
            while goes_on.is_set():
                call = stub(iter([start(), data(b"x")]), timeout=5)
                with contextlib.suppress(grpc.RpcError):
                    list(call)
                codes.append(call.code())
                if call.code() is not grpc.StatusCode.OK:
                    return

        pressing = [threading.Thread(target=press, name="Thread-press") for _ in range(4)]
        for one in pressing:
            one.start()
        assert eventually(lambda: len(codes) > 40)
        riff.close(1)
        goes_on.clear()
        for one in pressing:
            one.join(10)
        bad = {code for code in codes if code is not grpc.StatusCode.OK}
        assert bad <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


@pytest.mark.timeout(15)
def test_nothing_is_left_behind_by_calls(kind):
    """Twice 120 calls, some of them cut: as many threads and descriptors after the second time as after the first."""
    with Riff(kind, form(kind, gen, agen)) as riff:

        def rounds() -> tuple[int, int]:
            for number in range(120):
                call = riff.call(b"x")
                if number % 10 == 0:
                    assert call.read() == b"x"
                    call.cancel()
                    call.half_close()
                else:
                    assert call.rest() == [b"x"]
            assert eventually(lambda: not riff.driver.engine.running and not riff.driver.direct)
            assert eventually(lambda: not riff.driver.conversations and not riff.driver.leaving)
            assert eventually(lambda: not riff.driver.sweeper._conversations)
            ours = [one.name for one in threading.enumerate() if one.name.startswith("invoker")]
            return len(ours), len(list(Path("/proc/self/fd").iterdir()))

        rounds()
        threads, descriptors = rounds()
        again = rounds()
        assert again[0] < max(threads, 8) + 12 // 2  # as many as are busy at once; of the 12 cancelled calls, none
        assert again[1] <= descriptors + 2


@pytest.mark.parametrize("size", [64 * 1024])
def test_R127_a_peer_that_does_not_read_suspends_the_function(kind, size):
    """An endless function comes to a halt long before it has made 64 MiB, and goes on when its peer reads."""
    made = [0]

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        while True:
            made[0] += 1
            yield bytes(size)

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        while True:
            made[0] += 1
            yield bytes(size)

    with Riff(kind, form(kind, sync, asyn)) as riff:
        call = riff.call()
        call.rpc.initial_metadata()
        assert _halts(made)
        halted = made[0]
        assert halted * size < 64 * 1024 * 1024
        call.some(halted + 5)
        call.cancel()
        assert eventually(lambda: not riff.driver.engine.running, 2)


def _halts(made: list[int]) -> bool:
    until, before = time.monotonic() + 10, -1
    while time.monotonic() < until:
        if made[0] == before and before > 0:
            return True
        before = made[0]
        time.sleep(0.2)
    return False


def test_R128_a_function_that_does_not_pull_stops_its_peer(kind):
    """Frames that nobody reads stay with the peer, apart from a bounded lot."""
    go = threading.Event()

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        yield b"ready"
        go.wait(10)
        yield str(sum(1 for _ in xs)).encode()

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield b"ready"
        while not go.is_set():  # noqa: ASYNC110 - it is set by another thread
            await asyncio.sleep(0.01)
        yield str(len([x async for x in xs])).encode()

    taken = [0]

    def frames() -> Iterator[bytes]:
        yield start()
        for _ in range(1000):
            taken[0] += 1
            yield data(bytes(64 * 1024))

    with Riff(kind, form(kind, sync, asyn)) as riff:
        call = riff.channel.stream_stream(PATH)(frames(), timeout=15)
        assert b"ready" in next(call)
        assert _halts(taken)
        assert taken[0] < 900
        go.set()
        assert b"1000" in next(call)


def test_R129_R130_an_input_that_nobody_reads_is_no_deadlock_but_has_a_cap(kind):
    """A function that waits on one input gets it past a thousand frames of another; beyond the cap the call ends."""
    from invoker.core.streams import Limits

    def sync(a: Iterator[bytes], b: Iterator[bytes]) -> Iterator[bytes]:
        yield next(b)
        yield str(sum(1 for _ in a)).encode()

    async def asyn(a: AsyncIterator[bytes], b: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        yield await anext(aiter(b))
        yield str(len([x async for x in a])).encode()

    limits = Limits(high_frames=64, high_bytes=1 << 20, hard_frames=2000, hard_bytes=1 << 24)
    with Riff(kind, form(kind, sync, asyn), limits=limits) as riff:
        good = riff.call(*[b"x"] * 1000)
        good.data(b"go", 1)
        assert good.rest() == [b"go", b"1000"]
        bad = riff.call(*[b"x"] * 3000)
        assert bad.code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_process_keeps_its_descriptors_after_transports_have_closed(kind):
    """A transport that opened and closed leaves none behind."""

    def cycle() -> int:
        with Riff(kind, form(kind, gen, agen)) as riff:
            assert riff.call(b"x").rest() == [b"x"]
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count is all

    cycle()
    first = cycle()
    assert eventually(lambda: cycle() <= first + 1, 5)
