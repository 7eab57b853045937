"""Calls that need no reactor and end in another way: cancelled, late, cut, refused; and what is left of them."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from invoker import function
from invoker.core.invocation import Invocation
from invoker.core.unary import UnaryInvocation
from tests.conftest import SLOW
from tests.protocols.web.service.alike import Noted, lines
from tests.transports.grpc.alike import Client, Sent, Serving, Two, riff, tool, two
from tests.transports.riff import eventually

pytestmark = pytest.mark.timeout(60)

LIMIT_S = 5 * SLOW
COUNTS = ("frames_in", "bytes_in", "inputs")


class Gates:
    """Functions that wait until a test lets them go on."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.go = threading.Event()
        self.left = threading.Semaphore(0)

    @property
    def functions(self) -> tuple[Callable[..., object], ...]:
        """Two that wait, two that do not, and two that wait of which one call may run."""

        def waits(x: int) -> int:
            self.began.release()
            self.go.wait(LIMIT_S)
            self.left.release()
            return x

        async def awaits(x: int) -> int:
            self.began.release()
            try:
                while not self.go.is_set():  # noqa: ASYNC110 - it is set by another thread
                    await asyncio.sleep(0.001)
            finally:
                self.left.release()
            return x

        def quick(x: int) -> int:
            return x

        async def aquick(x: int) -> int:
            return x

        @function(max_calls=1)
        def single(x: int) -> int:
            return waits(x)

        @function(max_calls=1)
        async def asingle(x: int) -> int:
            return await awaits(x)

        return waits, awaits, quick, aquick, single, asingle


@pytest.fixture(params=["lending", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def gates() -> Iterator[Gates]:
    made = Gates()
    yield made
    made.go.set()


@pytest.fixture
def both(kind: str, gates: Gates, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    monkeypatch.setattr("invoker.transports.grpc.answering.PARK_S", 1.0)  # on a busy machine frames come one by one
    monkeypatch.setattr("invoker.transports.grpc.unarycall.ArrivalStats.pays", lambda _: True)
    with two(kind, *gates.functions, threads=1) as made:
        yield made


def state(serving: Serving) -> tuple[int, int, int]:
    """How many threads are busy, invocations run, and functions have not returned."""
    driver = serving.driver
    return driver.threads.busy, len(driver.engine.running), len(driver.left_behind)


def blocked(gates: Gates, client: Client, sent: Sent) -> int:
    """Begin a call, and wait until its function runs."""
    stream = client.begin(sent)
    assert gates.began.acquire(timeout=LIMIT_S)
    return stream


def await_line(noted: Noted) -> list[dict[str, object]]:
    """Wait until an invocation has been told of, and return what is told."""
    assert eventually(lambda: noted.told, LIMIT_S)
    return [{name: value for name, value in one.items() if name != "cause"} for one in noted.told]


def await_rest(serving: Serving) -> None:
    """Wait until nothing is left of any call."""
    assert eventually(serving.is_quiet, LIMIT_S), serving.driver.left_behind


@pytest.mark.parametrize("name", ["waits", "awaits"])
@pytest.mark.parametrize("call", [riff, tool])
def test_R115_a_cancelled_invocation_ends_at_once(
    both: Two, gates: Gates, name: str, call: Callable[..., Sent]
) -> None:
    """A sync function keeps its thread and nothing else, until it returns; both are told of in the same way."""
    seen = []
    for serving, noted, client in zip(both, both.noted, both.clients, strict=True):
        sent = riff(name, b"3") if call is riff else tool(name, 3)
        client.reset(blocked(gates, client, sent))
        told = await_line(noted)
        if name == "awaits":
            await_rest(serving)
        seen.append((state(serving), told))
        gates.go.set()
        assert gates.left.acquire(timeout=LIMIT_S)
        await_rest(serving)
        assert len(noted.told) == 1
        gates.go.clear()
    assert seen[0] == seen[1]
    assert seen[0][0] == ((1, 0, 1) if name == "waits" else (0, 0, 0))
    assert seen[0][1][0]["status"] == "CANCELLED"
    assert [one.kinds for one in both.noted] == [{UnaryInvocation}, {Invocation}]


@pytest.mark.parametrize("name", ["waits", "awaits"])
def test_R115_a_late_invocation_ends_at_its_deadline(both: Two, gates: Gates, name: str) -> None:
    """The client hears of it from the transport; the line says the same."""
    sent = riff(name, b"3", metadata=(("grpc-timeout", "100m"),))
    seen = []
    for serving, noted, client in zip(both, both.noted, both.clients, strict=True):
        answer = client.call(sent)
        seen.append((answer, await_line(noted)))
        gates.go.set()
        await_rest(serving)
        gates.go.clear()
    assert seen[0] == seen[1]
    assert seen[0][1][0]["status"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize(("name", "next_name"), [("waits", "quick"), ("single", "single"), ("asingle", "asingle")])
def test_a_call_that_has_no_place_is_refused_as_by_a_reactor(
    both: Two, gates: Gates, name: str, next_name: str
) -> None:
    """All threads are busy, or the function has its limit; a call of another function is served."""
    seen = []
    for serving, noted, client in zip(both, both.noted, both.clients, strict=True):
        with lines() as logged:
            stream = blocked(gates, client, riff(name, b"3"))
            answer = client.call(riff(next_name, b"4"))
            assert client.call(riff("aquick", b"5")).status == 0
            gates.go.set()
            assert client.answer(stream).status == 0
            await_rest(serving)
            after = client.call(riff(next_name, b"4"))
            await_rest(serving)
        gates.go.clear()
        # A reactor refuses a call for which there is no thread before its message has come, and counts none.
        told = [{key: value for key, value in one.items() if key not in COUNTS} for one in noted.told]
        seen.append((answer, after, sorted(logged), told, serving.driver.engine.counters.refused))
    assert seen[0] == seen[1]
    assert (seen[0][0].status, seen[0][1].status) == (8, 0)


@pytest.mark.parametrize("name", ["waits", "awaits"])
def test_R025_a_drain_waits_for_a_call_and_cuts_it(both: Two, gates: Gates, name: str) -> None:
    """The client gets UNAVAILABLE, and the invocation is told of at once, although its function still runs."""
    seen = []
    for serving, noted, client in zip(both, both.noted, both.clients, strict=True):
        stream = blocked(gates, client, riff(name, b"3"))
        drained = asyncio.run_coroutine_threadsafe(serving.driver.drain(0.2), serving.loop)
        answer = client.answer(stream)
        assert not drained.result(LIMIT_S)
        seen.append((answer, await_line(noted), len(serving.driver.engine.running)))
        gates.go.set()
        await_rest(serving)
        gates.go.clear()
    assert seen[0] == seen[1]
    assert (seen[0][0].status, seen[0][1][0]["status"], seen[0][2]) == (14, "UNAVAILABLE", 0)


def test_R025_a_drain_knows_a_call_of_which_no_frame_has_come(kind: str, gates: Gates) -> None:
    """It is cut as any other; and it is forgotten when the client gives it up."""
    silent = Sent([], metadata=(("invoker-function", "quick"),), ends=False)
    with Serving(kind, *gates.functions) as serving, serving.client() as client:
        driver = serving.driver
        stream = client.begin(silent)
        assert eventually(lambda: driver.conversations, LIMIT_S)
        client.reset(stream)
        await_rest(serving)
        stream = client.begin(silent)
        assert eventually(lambda: driver.conversations, LIMIT_S)
        drained = asyncio.run_coroutine_threadsafe(driver.drain(0.2), serving.loop)
        answer = client.answer(stream)
        assert answer.status == 14
        assert "within 0.2 s" in dict(answer.fields)["grpc-message"]
        assert not drained.result(LIMIT_S)


def test_R133_the_headers_of_a_call_that_takes_long_come_before_its_end(both: Two, gates: Gates) -> None:
    """Of a sync function after some beats of the sweeper, of an async one at once."""
    for name in ("waits", "awaits"):
        for serving, client in zip(both, both.clients, strict=True):
            stream = blocked(gates, client, riff(name, b"3", metadata=(("x-request-id", "abc"),)))
            headers = client.headers(stream)
            assert ("x-request-id", "abc") in headers
            assert ("grpc-status", "0") not in headers
            gates.go.set()
            assert client.answer(stream).status == 0
            await_rest(serving)
            gates.go.clear()


def test_a_sync_function_delays_no_other_call(kind: str, gates: Gates) -> None:
    """Neither of a sync function nor of an async one, while it blocks."""
    with Serving(kind, *gates.functions) as serving, serving.client() as client:
        streams = [client.begin(riff("waits", b"3")) for _ in range(4)]
        for _ in range(10):
            for name in ("quick", "aquick"):
                assert client.call(riff(name, b"3")).status == 0
        assert len(serving.driver.engine.running) == 4
        gates.go.set()
        assert eventually(lambda: not serving.driver.engine.running, LIMIT_S)
        assert len(streams) == 4


async def anap(x: float) -> float:
    await asyncio.sleep(x)
    return x


def nap(x: float) -> float:
    time.sleep(x)
    return x


@function(timeout_s=0.003)
async def alate(x: float) -> float:
    return await anap(x)


@function(timeout_s=0.003)
def late(x: float) -> float:
    return nap(x)


def test_R122_calls_that_are_cancelled_at_any_moment_leave_nothing(kind: str) -> None:
    """Before, between and behind their frames, while the function runs, and when the connection breaks."""
    chance, functions = random.Random(3), (anap, nap, alate, late)
    with Serving(kind, *functions) as serving:
        serving.session()
        client = Client(serving.port)
        for _ in range(300):
            name, x = chance.choice(functions).__name__, chance.random() * 0.006
            sent = riff(name, b"%f" % x) if chance.random() < 0.7 else tool(name, x)
            size = len(b"".join(sent.packets(1)))
            how = chance.choice(["whole", "cut", "some", "broken", "answered"])
            if how == "cut":
                sent = replace(sent, cut=(chance.randrange(size),), pause_s=chance.choice([0, 0.001, 0.004]))
            elif how == "some":
                sent = replace(sent, frames=sent.frames[: chance.randrange(2)], ends=False)
            stream = client.begin(sent)
            if how == "answered":
                assert client.answer(stream).status in (0, 4)
                continue
            time.sleep(chance.choice([0, 0, 0.001, 0.003, 0.006]))
            client.reset(stream)
            if how == "broken":
                client.close()
                client = Client(serving.port)
        client.close()
        await_rest(serving)
        driver = serving.driver
        assert driver.threads.stuck == 0
        assert eventually(lambda: not (driver.sweeper._conversations or driver.sweeper._followed), LIMIT_S)
