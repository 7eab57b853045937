"""How a call ends that is all here before its function runs: cancels, deadlines, drains, deaf functions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker import Status
from invoker.transports.grpc.settings import GrpcSettings
from tests.conftest import SLOW
from tests.transports.rawpeer import RawPeer
from tests.transports.riff import PATH, Riff, data, eventually, form, start
from tests.transports.whole_calls import (
    CANCELLED,
    CORE,
    DEADLINE_EXCEEDED,
    NODE,
    OK,
    TRANSPORTS,
    UNAVAILABLE,
    Watcher,
    aecho,
    echo,
    finished,
    named,
)


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R115_a_reset_ends_a_whole_call_in_user_code(kind):
    """The context tells it, nothing is sent any more, and the next call on the connection is served."""
    watcher = Watcher()
    with Riff(kind, watcher.of(kind), form(kind, echo, aecho)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        for _ in range(5):
            stream = peer.whole(PATH, start(), data(b"a"), metadata=named("watch"))
            assert watcher.inside.acquire(timeout=5)
            peer.cancel(stream)
        assert finished(riff, 5) == {Status.CANCELLED: 5}
        assert peer.await_reply(peer.whole(PATH, start(), data(b"a"), metadata=named("echo")))[1] == OK
        assert eventually(lambda: watcher.seen.count("left") == 5)
        assert eventually(lambda: riff.driver.threads.busy == 0)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("after_ms", [0, 1, 2, 4])
@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R109_a_whole_call_that_turns_into_a_cancel_never_commits(kind, after_ms):
    """All of it in one write, then RST_STREAM as much later as @grpc/grpc-js needs: no function sees a clean end."""
    committed, left = [], threading.Semaphore(0)

    def total(xs: Iterator[bytes]) -> Iterator[bytes]:
        try:
            committed.append(sum(1 for _ in xs))
            yield b"sum"
        finally:
            left.release()

    async def atotal(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            committed.append(sum([1 async for _ in xs]))
            yield b"sum"
        finally:
            left.release()

    atotal.__name__ = "total"
    transport = {"settings": GrpcSettings(settle_s=0.5)}
    with Riff(kind, form(kind, total, atotal), transport=transport) as riff, RawPeer(riff.port, agent=NODE) as peer:
        for _ in range(20):
            stream = peer.whole(PATH, start(), data(b"1"))
            time.sleep(after_ms / 1000)
            peer.cancel(stream)
        counters = riff.driver.engine.counters
        assert eventually(lambda: sum(counters.finished.values()) == counters.opened and not riff.driver.direct)
        assert set(counters.finished) <= {Status.CANCELLED}
    assert committed == []


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R109_a_whole_request_reply_call_that_is_cancelled_leaves_nothing(kind):
    """Its value may be answered, since no code of it sees the end; afterwards the transport serves as before."""

    def double(x: bytes) -> bytes:
        return x + x

    async def adouble(x: bytes) -> bytes:
        return x + x

    adouble.__name__ = "double"
    with Riff(kind, form(kind, double, adouble)) as riff, RawPeer(riff.port, agent=NODE) as peer:
        for after_s in (0, 0.001, 0.002, 0.004) * 5:
            stream = peer.whole(PATH, start(), data(b"1"))
            time.sleep(after_s)
            peer.cancel(stream)
        stream = peer.whole(PATH, start(), data(b"ab"))
        messages, status, _ = peer.await_reply(stream)
        assert status == OK
        assert b"abab" in messages[0]
        assert eventually(lambda: not riff.driver.engine.running and riff.driver.threads.busy == 0)
        assert set(riff.driver.engine.counters.finished) <= {Status.OK, Status.CANCELLED}


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R124_a_deadline_ends_a_whole_call_in_user_code(kind):
    """The caller is told DEADLINE_EXCEEDED, the function that it is over, and so do the counters."""
    watcher = Watcher()
    with Riff(kind, watcher.of(kind)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        stream = peer.whole(PATH, start(), data(b"a"), metadata=(("grpc-timeout", "150m"),))
        began = time.monotonic()
        assert peer.await_reply(stream)[1] in (DEADLINE_EXCEEDED, CANCELLED, "reset")
        assert time.monotonic() - began < 1 * SLOW
        assert finished(riff, 1) == {Status.DEADLINE_EXCEEDED: 1}
        assert eventually(lambda: watcher.seen in (["left"], ["went on", "left"]))


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R025_a_drain_lets_a_whole_call_end_and_refuses_the_next(kind):
    """The one in user code is waited for."""
    watcher = Watcher()
    with Riff(kind, watcher.of(kind)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        stream = peer.whole(PATH, start(), data(b"a"))
        assert watcher.inside.acquire(timeout=5)
        drained = asyncio.run_coroutine_threadsafe(riff.driver.drain(10), riff.loop)
        assert eventually(lambda: riff.driver.engine.is_draining)
        assert peer.await_reply(peer.whole(PATH, start(), data(b"a")))[1] == UNAVAILABLE
        assert not drained.done()
        watcher.go.set()
        assert peer.await_reply(stream)[1] == OK
        assert drained.result(10)
        assert riff.driver.engine.counters.finished == {Status.OK: 1}


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_R025_a_drain_that_is_over_cuts_a_whole_call(kind):
    """Its caller is told UNAVAILABLE."""
    watcher = Watcher()
    with Riff(kind, watcher.of(kind)) as riff, RawPeer(riff.port, agent=CORE) as peer:
        stream = peer.whole(PATH, start(), data(b"a"))
        assert watcher.inside.acquire(timeout=5)
        assert riff.run(riff.driver.drain(0.05)) is False
        assert peer.await_reply(stream)[1] == UNAVAILABLE
        assert finished(riff, 1) == {Status.UNAVAILABLE: 1}


def test_R116_a_deaf_whole_call_is_counted_as_stuck():
    """Until its thread has left user code; other calls are served meanwhile."""
    inside, go = threading.Event(), threading.Event()

    def deaf(xs: Iterator[bytes]) -> Iterator[bytes]:
        inside.set()
        go.wait(10)
        yield b""

    with Riff("direct", deaf, echo, grace_s=0.1) as riff, RawPeer(riff.port, agent=CORE) as peer:
        stream = peer.whole(PATH, start(), data(b"a"), metadata=named("deaf"))
        assert inside.wait(5)
        peer.cancel(stream)
        assert eventually(lambda: riff.driver.threads.stuck == 1)
        assert peer.await_reply(peer.whole(PATH, start(), data(b"a"), metadata=named("echo")))[1] == OK
        go.set()
        assert eventually(lambda: riff.driver.threads.stuck == 0)
        assert eventually(lambda: riff.driver.threads.busy == 0)
