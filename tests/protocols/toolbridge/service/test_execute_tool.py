"""ExecuteTool at each transport."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from invoker import Context, ToolError
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.store import Create
from invoker.protocols.toolbridge.host_sessions import space_of
from invoker.protocols.toolbridge.service.rpcs import SERVICE
from tests.protocols.toolbridge.service.gates import Gate
from tests.transports.bridge import TRANSPORTS, Bridged, packed, unpacked
from tests.transports.riff import eventually, form

pytestmark = pytest.mark.parametrize("kind", TRANSPORTS)


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


asquare.__name__ = "square"


def test_T064_a_tool_is_executed(kind):
    """By position and by name; its result, the request id and metrics come."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        answer = served.execute("square", 5, request_id="r")
        assert answer.success
        assert unpacked(answer.result) == 25
        assert answer.request_id == "r"
        assert answer.HasField("metrics")
        assert unpacked(served.execute("square", x=6).result) == 36
        assert served.driver.engine.counters.opened == 2


def test_T177_a_tool_call_is_an_invocation(kind):
    """Limits, counters and the log of the engine are those of every other call."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        served.execute("square", 5)
        assert eventually(lambda: sum(served.driver.engine.counters.finished.values()) == 1)
        assert served.driver.engine.counters.frames_in == 1
        assert not served.driver.engine.running


class Rude(Exception):
    """Nobody can print it."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def rude() -> int:
    raise Rude


async def arude() -> int:
    raise Rude


arude.__name__ = "rude"


def test_T065_an_exception_that_cannot_be_printed_is_told_by_its_class(kind):
    """At each transport; it is never a success."""
    with Bridged(kind, arude if kind == "lending" else rude) as bridged:
        bridged.session()
        response = bridged.execute("rude")
        assert not response.success
        assert not response.HasField("result")
        assert response.error.type == "InternalError"
        assert response.error.details["exception"].endswith("Rude")
        assert response.error.message


def test_T065_an_exception_is_told_in_band(kind):
    """With its class; the server goes on."""

    def boom(x: int) -> int:
        raise KeyError("no")

    async def aboom(x: int) -> int:
        raise KeyError("no")

    aboom.__name__ = "boom"
    with Bridged(kind, form(kind, boom, aboom)) as served:
        served.session()
        for _ in range(2):
            answer = served.execute("boom", 5)
            assert not answer.success
            assert answer.error.type == "InternalError"
            assert answer.error.details["exception"] == "KeyError"
            assert answer.error.stacktrace == ""


def test_T104_a_result_that_cannot_be_sent_is_told_with_its_place(kind):
    """In-band, like what a function raises."""

    def odd(x: int) -> dict[Any, Any]:
        return {"a": [{5: 6}]}

    async def aodd(x: int) -> dict[Any, Any]:
        return {"a": [{5: 6}]}

    aodd.__name__ = "odd"
    with Bridged(kind, form(kind, odd, aodd)) as served:
        served.session()
        error = served.execute("odd", 5).error
        assert (error.type, error.details["code"]) == ("InternalError", "unserializable")
        assert error.details["path"]


def test_T066_a_tool_chooses_its_error(kind):
    """Its kind, text and details."""

    def full(x: int) -> int:
        raise ToolError("ResourceExhausted", "later", {"retry_after_ms": 5})

    async def afull(x: int) -> int:
        raise ToolError("ResourceExhausted", "later", {"retry_after_ms": 5})

    afull.__name__ = "full"
    with Bridged(kind, form(kind, full, afull)) as served:
        served.session()
        error = served.execute("full", 5).error
        assert (error.type, error.message, dict(error.details)) == (
            "ResourceExhausted",
            "later",
            {"retry_after_ms": "5"},
        )


def test_T056_a_deadline_of_the_caller_ends_the_call(kind):
    """The caller sees it, and so does the function."""
    seen = threading.Event()

    def wait(x: int, ctx: Context) -> int:
        while not ctx.cancelled:
            time.sleep(0.005)
        seen.set()
        return x

    async def await_(x: int) -> int:
        try:
            await asyncio.sleep(3600)
        finally:
            seen.set()
        return x

    await_.__name__ = "wait"
    with Bridged(kind, form(kind, wait, await_)) as served:
        served.session()
        request = pb.ToolCallRequest(session_id="s1", tool_id="wait", args=[packed(7)])
        with pytest.raises(grpc.RpcError) as caught:
            served.send("ExecuteTool", request, timeout=0.3)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert seen.wait(10)
        assert eventually(lambda: not served.bridge.host_sessions.sessions["s1"].operations)


def test_large_results_are_let_go_of_at_once(kind):
    """They do not wait for the garbage collector."""

    def large(n: int) -> bytes:
        return bytes(n)

    async def alarge(n: int) -> bytes:
        return bytes(n)

    alarge.__name__ = "large"
    options = {"grpc.max_receive_message_length": 16 << 20}
    with Bridged(kind, form(kind, large, alarge)) as served:
        served.session()
        channel = grpc.insecure_channel(f"127.0.0.1:{served.port}", list(options.items()))
        make = channel.unary_unary(f"/{SERVICE}/ExecuteTool", pb.ToolCallRequest.SerializeToString)
        requests = [
            pb.ToolCallRequest(session_id="s1", tool_id="large", args=[packed(size)])
            for size in (4_000_000, 11_000_000)
        ]
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for request in requests * 3:
                assert make(request, timeout=60)
            assert eventually(lambda: tracemalloc.get_traced_memory()[0] < 6_000_000)
        finally:
            tracemalloc.stop()
            gc.enable()
            channel.close()


def test_T067_the_items_of_a_generator_are_a_list(kind):
    """A thousand at most, and the generator is closed then."""
    closed = threading.Event()

    def count(n: int) -> Any:
        try:
            yield from range(n)
        finally:
            closed.set()

    async def acount(n: int) -> Any:
        try:
            for one in range(n):
                yield one
        finally:
            closed.set()

    acount.__name__ = "count"
    with Bridged(kind, form(kind, count, acount)) as served:
        served.session()
        assert unpacked(served.execute("count", 3).result) == [0, 1, 2]
        closed.clear()
        answer = served.execute("count", 10_000_000)
        assert answer.error.type == "ResourceExhausted"
        assert answer.error.details["code"] == "too_many_chunks"
        assert closed.wait(5)


def test_T069_the_context_reaches_the_function(kind):
    """As a dict among the configs."""

    def told(x: int, ctx: Context) -> str:
        return str(ctx.config(dict))

    async def atold(x: int, ctx: Context) -> str:
        return str(ctx.config(dict))

    atold.__name__ = "told"
    with Bridged(kind, form(kind, told, atold)) as served:
        served.session()
        answer = served.rpc("ExecuteTool", session_id="s1", tool_id="told", args=[packed(1)], context={"a": "b"})
        assert unpacked(answer.result) == "{'a': 'b'}"


def test_T008_a_session_of_another_process_is_found(kind):
    """It stands in the store; one that stands nowhere is told in-band."""
    with Bridged(kind, form(kind, square, asquare)) as served:

        async def make() -> None:
            about = pb.InitializeSessionRequest(session_id="other").SerializeToString()
            served.driver.store.ask(_Nobody(), "k", Create(space_of("other"), 60.0, about))

        served.run(make())
        assert unpacked(served.execute("square", 5, session_id="other").result) == 25
        assert served.execute("square", 5, session_id="none").error.details["code"] == "unknown"


class _Nobody:
    def answered(self, key: str, value: Any) -> None:
        pass

    def has_news(self, news: Any) -> None:
        raise AssertionError(news)


def test_T058_a_session_runs_as_many_tools_as_it_may(kind):
    """One more fails at once; afterwards there is room again."""
    gate = Gate()
    with Bridged(kind, gate.of(kind)) as served, ThreadPoolExecutor(2) as pool:
        served.session(max_concurrent_tools=2)
        calls = [pool.submit(served.execute, "gate", 7) for _ in range(2)]
        for _ in range(2):
            assert gate.entered.acquire(timeout=20)
        answer = served.execute("gate", 7)
        assert (answer.error.type, answer.error.details["code"]) == ("ResourceExhausted", "concurrency")
        assert served.rpc("GetSessionInfo", session_id="s1").active_operations == 2
        gate.open.set()
        assert all(one.result(20).success for one in calls)
        assert served.execute("gate", 7).success


def test_a_caller_that_leaves_frees_its_place(kind):
    """The function hears of it, and the session counts one operation less."""
    gate = Gate()
    with Bridged(kind, gate.of(kind)) as served:
        served.session()
        request = pb.ToolCallRequest(session_id="s1", tool_id="gate", args=[packed(7)])
        make = served.channel.unary_unary(f"/{SERVICE}/ExecuteTool", pb.ToolCallRequest.SerializeToString)
        call = make.future(request, timeout=20)
        assert gate.entered.acquire(timeout=20)
        call.cancel()
        gate.open.set()
        assert eventually(lambda: gate.ended == 1)
        assert eventually(lambda: not served.bridge.host_sessions.sessions["s1"].operations)


def test_T014_a_forced_clean_up_ends_what_runs(kind):
    """The call hears it in-band; without force nothing changes."""
    gate = Gate()
    with Bridged(kind, gate.of(kind)) as served, ThreadPoolExecutor(2) as pool:
        served.session()
        call = pool.submit(served.execute, "gate", 7)
        assert gate.entered.acquire(timeout=20)
        answer = served.rpc("CleanupSession", session_id="s1")
        assert answer.error.details["active_operations"] == "1"
        clean = pool.submit(served.rpc, "CleanupSession", session_id="s1", force=True)
        error = call.result(20).error
        assert (error.type, error.details["code"]) == ("SessionExpired", "cleaned")
        gate.open.set()
        assert clean.result(20).success
        assert served.execute("gate", 7).error.details["code"] == "cleaned"


def test_T014_calls_race_with_forced_clean_ups(kind):
    """Each call ends, with its result or because its session is gone; nothing is left behind."""

    def nap(x: int) -> int:
        time.sleep(0.0005)
        return x

    async def anap(x: int) -> int:
        await asyncio.sleep(0.0005)
        return x

    anap.__name__ = "nap"
    with Bridged(kind, form(kind, nap, anap)) as served, ThreadPoolExecutor(8) as pool:
        for number in range(12):
            served.session(f"s{number}")
            calls = [pool.submit(_tried, served, "nap", f"s{number}") for _ in range(8)]
            assert served.rpc("CleanupSession", session_id=f"s{number}", force=True).success
            assert {one.result(20) for one in calls} <= {"", "SessionExpired"}
        assert served.bridge.host_sessions.sessions == {}
        assert eventually(lambda: not served.driver.engine.running)


def _tried(served: Bridged, tool: str, session_id: str) -> str:
    """The type of the error with which a call ended."""
    return str(served.execute(tool, 1, session_id=session_id).error.type)


@pytest.mark.parametrize("fails", [False, True])
def test_T064_the_metrics_tell_the_processor_time_of_a_sync_tool(kind, fails):
    """That of its own thread, also if it fails; what it slept is not of it, and of async tools it is not known."""

    def spends(x: int) -> int:
        until = time.thread_time() + 0.03
        while time.thread_time() < until:
            pass
        time.sleep(0.05)
        if fails:
            raise ValueError(x)
        return x

    async def aspends(x: int) -> int:
        return spends(x)

    with Bridged(kind, spends, *([] if kind.startswith("direct") else [aspends])) as served:
        served.session()
        metrics = served.execute("spends", 1).metrics
        assert metrics.duration_ms >= 80
        assert 30 <= metrics.cpu_time_ms <= metrics.duration_ms - 30
        assert metrics.memory_bytes == 0
        if not kind.startswith("direct"):
            assert served.execute("aspends", 1).metrics.cpu_time_ms == 0


def test_T064_the_metrics_of_a_generator(kind):
    """Its values are collected, and what each of them took."""

    def spends(count: int) -> Iterator[int]:
        for number in range(count):
            until = time.thread_time() + 0.01
            while time.thread_time() < until:
                pass
            yield number

    async def other(x: int) -> int:
        return x

    with Bridged(kind, spends, *([] if kind.startswith("direct") else [other])) as served:
        served.session()
        assert 30 <= served.execute("spends", 3).metrics.cpu_time_ms < 1000
