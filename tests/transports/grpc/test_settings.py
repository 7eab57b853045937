"""What both gRPC transports are told, seen from a client on bare frames."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from h2.events import ConnectionTerminated, PingAckReceived, PingReceived
from h2.settings import SettingCodes

from invoker.transports.grpc.settings import GrpcSettings
from tests.conftest import SLOW
from tests.transports.rawpeer import RawPeer
from tests.transports.riff import PATH, Riff, data, form, start

pytestmark = pytest.mark.parametrize("kind", ["aio", "direct", "lending"])


def idle(began: threading.Semaphore, left: threading.Semaphore):
    """A function that waits for input, and tells that it began and that it left."""

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        began.release()
        try:
            yield from xs
        finally:
            left.release()

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        began.release()
        try:
            async for x in xs:
                yield x
        finally:
            left.release()

    return sync, asyn


def test_a_client_is_told_how_many_calls_it_may_have(kind):
    """In the server's SETTINGS."""
    functions = idle(threading.Semaphore(0), threading.Semaphore(0))
    with (
        Riff(kind, form(kind, *functions), transport={"settings": GrpcSettings(max_streams=7)}) as riff,
        RawPeer(riff.port) as peer,
    ):
        assert peer.await_settings()[SettingCodes.MAX_CONCURRENT_STREAMS] == 7


@pytest.mark.timeout(20)
def test_R128_a_call_that_is_not_read_leaves_one_window_in_the_transport(kind):
    """Beyond the 4 MiB, or 32 frames, at which reading pauses; however fast the peer is, and whatever it pings."""
    window_bytes, high_bytes, frame = 256 * 1024, 4 * 1024 * 1024, data(bytes(60_000))
    go, began = threading.Event(), threading.Semaphore(0)

    def sync(xs: Iterator[bytes]) -> Iterator[bytes]:
        began.release()
        go.wait(15)
        yield from xs

    async def asyn(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        began.release()
        while not go.is_set():  # noqa: ASYNC110 - it is set by another thread
            await asyncio.sleep(0.01)
        async for x in xs:
            yield x

    settings = GrpcSettings(window_bytes=window_bytes)
    with (
        Riff(kind, form(kind, sync, asyn), transport={"settings": settings}) as riff,
        RawPeer(riff.port) as peer,
    ):
        assert peer.await_settings()[SettingCodes.INITIAL_WINDOW_SIZE] == window_bytes
        stream = peer.call(PATH, start())
        assert began.acquire(timeout=5 * SLOW)
        sent = peer.fill(stream, frame, 4 * high_bytes, 0.5 * SLOW)
        go.set()
    assert sent > window_bytes
    # Beyond the mark: what crosses it, what is read already, what gRPC has put together, and a part on each side.
    assert sent < high_bytes + window_bytes + 5 * len(frame)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("is_frozen", [True, False])
def test_R115_a_peer_that_answers_no_pings_is_gone(kind, is_frozen):
    """The idle stream of a frozen peer ends after the keepalive time and its timeout; one that answers keeps its own.

    Frozen: its socket takes everything, and nobody reads it.
    """
    began, left = threading.Semaphore(0), threading.Semaphore(0)
    settings = GrpcSettings(keepalive_s=0.2, keepalive_timeout_s=0.2)
    with (
        Riff(kind, form(kind, *idle(began, left)), transport={"settings": settings}) as riff,
        RawPeer(riff.port) as peer,
    ):
        peer.call(PATH, start())
        assert began.acquire(timeout=5 * SLOW)
        if is_frozen:
            assert left.acquire(timeout=5 * SLOW)
        else:
            pings = 0
            while pings < 5:
                pings += sum(isinstance(one, PingReceived) for one in peer.receive())
            assert not left.acquire(blocking=False)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("ping_s", "is_closed"), [(0.05, False), (300.0, True)])
def test_T163_clients_may_ask_for_a_sign_of_life_without_calls(kind, ping_s, is_closed):
    """Pings that are no more frequent than allowed are answered; grpcio's own five minutes end the connection."""
    functions = idle(threading.Semaphore(0), threading.Semaphore(0))
    with (
        Riff(kind, form(kind, *functions), transport={"settings": GrpcSettings(ping_s=ping_s)}) as riff,
        RawPeer(riff.port) as peer,
    ):
        peer.await_settings()
        answered, was_closed = 0, False
        for _ in range(6):
            peer.ping()
            end = time.monotonic() + 2 * SLOW
            while answered < 1 and not was_closed and time.monotonic() < end:
                events = peer.receive()
                answered += sum(isinstance(one, PingAckReceived) for one in events)
                was_closed = was_closed or any(isinstance(one, ConnectionTerminated) for one in events)
            if was_closed:
                break
            answered = 0
            time.sleep(0.1)
        assert was_closed is is_closed


def test_T163_the_settings_are_those_of_the_bridge(kind):
    """Idle connections go after five minutes, and pings may come each ten seconds; on every transport."""
    told = dict(GrpcSettings().options())
    assert told["grpc.max_connection_idle_ms"] == 300_000
    assert told["grpc.http2.min_ping_interval_without_data_ms"] <= 30_000
    assert told["grpc.http2.min_recv_ping_interval_without_data_ms"] <= 30_000
    assert told["grpc.keepalive_permit_without_calls"] == 1


def test_an_idle_stream_of_a_dead_peer_is_gone_after_80_seconds(kind):
    """By the settings that are used where nothing else is said."""
    told = dict(GrpcSettings().options())
    assert told["grpc.keepalive_time_ms"] + told["grpc.keepalive_timeout_ms"] <= 80_000
    assert told["grpc.keepalive_time_ms"] + told["grpc.http2.ping_timeout_ms"] <= 80_000
    assert told["grpc.keepalive_permit_without_calls"] == 1
