"""A half-close is believed once it has settled.

Raw HTTP/2 frames on each transport, and whose word is taken at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from invoker.message import Headers
from invoker.transports.grpc import settling
from invoker.transports.grpc.settings import GrpcSettings
from invoker.transports.grpc.settling import settle, settle_time
from tests.conftest import SLOW
from tests.transports.evergreen import PATH as EVERGREEN
from tests.transports.evergreen import TRANSPORTS, Served, act, frame, leaf
from tests.transports.rawpeer import RawPeer
from tests.transports.riff import FAST, KINDS, PATH, Riff, data, eventually, form, start

CORE = "grpc-python/1.85.1 grpc-c/58.0.0 (linux; chttp2)"
NODE = "grpc-node-js/1.14.7"
# Cancels are judged with a settle time that no busy machine exceeds between two writes of the peer. What the usual time
# is worth against a real client is measured by tests.interop.cancels, which tells how far the two frames were apart.
WIDE_S = 5.0 * SLOW
_NARROW_S = 0.3


def wide(settle_s: float = WIDE_S) -> dict[str, Any]:
    """A transport that gives a half-close much time to turn into a cancel."""
    return {"settings": GrpcSettings(settle_s=settle_s)}


@pytest.mark.parametrize(
    ("agent", "is_trusted"),
    [
        (CORE, True),
        ("grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)", True),
        ("grpc-python-asyncio/1.85.1", True),
        ("grpc-go/1.60.1", True),
        ("shop/2.1 (linux) grpc-go/1.60.1", True),
        ("grpc-java-netty/1.60.0", True),
        ("grpc-java-okhttp/1.60.0", True),
        (NODE, False),
        (f"shop/2.1 {NODE}", False),
        (f"grpc-go/1.60.1 {NODE}", False),
        ("grpc-java-/1", False),
        ("my-grpc-go/1", False),
        ("grpc-gopher/1", False),
        ("grpc-dotnet/2.60.0", False),
        ("tonic/0.12", False),
        ("raw/1.0", False),
        ("", False),
    ],
)
def test_R109_a_known_stack_need_not_settle(agent, is_trusted):
    """Whose user-agent has a token of a stack that cancels by RST_STREAM alone, and none of @grpc/grpc-js."""
    assert settle_time(Headers({"user-agent": agent}), 0.5) == (0.0 if is_trusted else 0.5)


def test_R109_who_does_not_say_what_it_is_must_settle():
    """A call may come without user-agent."""
    assert settle_time(Headers(), 0.5) == 0.5


class Sums:
    """An aggregator in both forms, which tells what it has committed.

    Attributes:
        committed: Counts of inputs whose end it saw.
        began: Released by each run once it has had its first value.
        left: Released by each run when it is over.
    """

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.began, self.left = threading.Semaphore(0), threading.Semaphore(0)

    def of(self, kind: str) -> Callable[..., Any]:
        """The form that makes a transport of this kind what it is."""

        def total(xs: Iterator[bytes]) -> Iterator[bytes]:
            try:
                self.committed.append(sum(1 for _ in self._seen(xs)))
                yield b"sum"
            finally:
                self.left.release()

        async def atotal(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            try:
                count = 0
                async for _ in xs:
                    count += 1
                    self.began.release()
                self.committed.append(count)
                yield b"sum"
            finally:
                self.left.release()

        atotal.__name__ = "total"
        return form(kind, total, atotal)

    def _seen(self, xs: Iterator[bytes]) -> Iterator[bytes]:
        for x in xs:
            self.began.release()
            yield x


@pytest.mark.timeout(30)
@pytest.mark.parametrize("after_ms", [0, 1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_R109_R110_an_end_that_turns_into_a_cancel_never_commits(kind, after_ms):
    """END_STREAM, then RST_STREAM as much later as @grpc/grpc-js needs: none of 50 aggregators sees a clean end."""
    sums = Sums()
    with Riff(kind, sums.of(kind), transport=wide()) as riff, RawPeer(riff.port) as peer:
        for _ in range(50):
            stream = peer.call(PATH, start(), data(b"1"))
            assert sums.began.acquire(timeout=5)
            peer.end_and_cancel(stream, after_ms / 1000)
            assert sums.left.acquire(timeout=5)
    assert sums.committed == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("agents", [*itertools.permutations(["", NODE, "tonic/0.12", CORE], 2), ("", "")])
@pytest.mark.parametrize("kind", KINDS)
def test_R109_what_calls_before_it_said_does_not_end_a_call(kind, agents, is_whole):
    """A transport that is new, or has served any other stack, or nobody's.

    The cancel of an unknown one never commits.
    """
    sums = Sums()
    with Riff(kind, sums.of(kind), transport=wide()) as riff, contextlib.ExitStack() as open_:
        for agent in agents:
            peer = open_.enter_context(RawPeer(riff.port, agent=agent))
            for _ in range(3):
                begin = peer.call if agent == CORE or not is_whole else peer.whole
                stream = begin(PATH, start(), data(b"1"))
                if begin == peer.call:
                    assert sums.began.acquire(timeout=5)
                    peer.cancel(stream) if agent == CORE else peer.end_and_cancel(stream, 0.002)
                else:
                    time.sleep(0.002)
                    peer.cancel(stream)
        counters = riff.driver.engine.counters
        assert eventually(lambda: sum(counters.finished.values()) == counters.opened and not riff.driver.direct)
    assert sums.committed == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["aio", "direct", "lending"])
def test_R109_two_outputs_settle_too(kind):
    """Each output has an iterator of its own, and both wait for the same half-close."""
    ends, began, left = [], threading.Semaphore(0), threading.Semaphore(0)

    def count(xs: Iterator[bytes]) -> Iterator[int]:
        began.release()
        try:
            for _ in xs:
                pass
            ends.append("end")
            yield 1
        finally:
            left.release()

    async def acount(xs: AsyncIterator[bytes]) -> AsyncIterator[int]:
        began.release()
        try:
            async for _ in xs:
                pass
            ends.append("end")
            yield 1
        finally:
            left.release()

    def both(xs: Iterator[bytes], ys: Iterator[bytes]) -> tuple[Iterator[int], Iterator[int]]:
        return count(xs), count(ys)

    def aboth(xs: AsyncIterator[bytes], ys: AsyncIterator[bytes]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
        return acount(xs), acount(ys)

    with Riff(kind, form(kind, both, aboth), transport=wide()) as riff, RawPeer(riff.port) as peer:
        for _ in range(10):
            stream = peer.call(PATH, start(outputs=2))
            for _ in "xy":
                assert began.acquire(timeout=5)
            peer.end_and_cancel(stream, 0.003)
            for _ in "xy":
                assert left.acquire(timeout=5)
    assert ends == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", TRANSPORTS)
def test_E010_R109_a_session_is_not_half_closed_by_a_cancel(kind):
    """An action that gathers its input never sees the end of it."""
    sums = Sums()
    with Served(kind, sums.of(kind), transport=wide()) as served, RawPeer(served.port) as peer:
        for _ in range(20):
            parts = leaf("p", b"a", more=True), act("total", {"xs": "p"}, {"out": "r"})
            stream = peer.call(EVERGREEN, frame(*parts))
            assert sums.began.acquire(timeout=5)
            peer.end_and_cancel(stream, 0.002)
            assert sums.left.acquire(timeout=5)
        assert eventually(lambda: served.evergreen.running == 0)
    assert sums.committed == []


def _took(kind: str, function: Callable[..., Any], agent: str, settle_s: float) -> float:
    """How long a call that ends well takes from its half-close to its status, where settling takes so long."""
    with (
        Riff(kind, function, transport=wide(settle_s)) as riff,
        RawPeer(riff.port, agent=agent) as peer,
    ):
        stream = peer.call(PATH, start(), data(b"1"))
        peer.await_message(stream)
        began = time.monotonic()
        peer.half_close(stream)
        peer.await_end(stream)
        return time.monotonic() - began


@pytest.mark.parametrize(("agent", "settles"), [(NODE, True), (CORE, False)])
@pytest.mark.parametrize("kind", FAST)
def test_R109_only_peers_that_need_it_wait_on_the_fast_transport(kind, agent, settles):
    """A streaming function ends after the settle time for @grpc/grpc-js, and at once for a stack that resets."""

    def gen(xs: Iterator[bytes]) -> Iterator[bytes]:
        yield from xs

    async def agen(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for x in xs:
            yield x

    settle_s = _NARROW_S if settles else WIDE_S
    assert (_took(kind, form(kind, gen, agen), agent, settle_s) >= settle_s) is settles


def test_R109_everybody_waits_on_the_aio_transport():
    """There the race is the server's own."""

    async def agen(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for x in xs:
            yield x

    assert _took("aio", agen, CORE, _NARROW_S) >= _NARROW_S


@pytest.mark.parametrize("kind", KINDS)
def test_R109_a_request_reply_function_never_waits(kind):
    """No code of it sees the end of its input, so its status leaves at once."""

    def echo(x: bytes) -> bytes:
        return x

    async def aecho(x: bytes) -> bytes:
        return x

    assert _took(kind, form(kind, echo, aecho), NODE, WIDE_S) < WIDE_S


@pytest.mark.parametrize("kind", KINDS)
def test_R109_R167_a_cancel_is_no_call_without_arguments(kind):
    """A request/reply function that is called with its defaults when its inputs end without a value."""
    called = threading.Semaphore(0)

    def greet(name: bytes = b"world") -> bytes:
        called.release()
        return name

    async def agreet(name: bytes = b"world") -> bytes:
        called.release()
        return name

    with Riff(kind, form(kind, greet, agreet), transport=wide(1.0)) as riff, RawPeer(riff.port) as peer:
        for _ in range(10):
            stream = peer.call(PATH, start())
            peer.await_headers(stream)
            peer.end_and_cancel(stream, 0.002)
        assert eventually(lambda: riff.driver.engine.counters.finished and not riff.driver.engine.running)
        assert not called.acquire(timeout=0.05)
        assert riff.call().rest() == [b"world"]


class Context:
    """What `settle` uses of a call of grpc.aio.

    Args:
        on_read: Happens before the answer to a read.
    """

    def __init__(self, on_read: Callable[[], Any]) -> None:
        self._on_read = on_read

    async def read(self) -> Any:
        self._on_read()
        return settling.grpc.aio.EOF


async def test_R109_a_cancel_that_arrives_with_the_last_read_is_no_end():
    """The task of the call was told to cancel, but has not run since: whoever settles must not go on."""

    async def handle() -> None:
        await asyncio.get_running_loop().create_future()

    call = asyncio.ensure_future(handle())
    await asyncio.sleep(0)
    settled = asyncio.ensure_future(settle(Context(call.cancel), call, 0))
    done, _ = await asyncio.wait([settled], timeout=0.05)
    assert not done
    settled.cancel()


async def test_R109_a_call_that_goes_on_has_settled():
    """Nothing was cancelled."""
    await asyncio.wait_for(settle(Context(lambda: None), asyncio.current_task(), 0), 5)
