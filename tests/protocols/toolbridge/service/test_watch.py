"""Metrics, health and audit of the bridge at the transports."""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.author.decorator import function
from invoker.codecs.anyvalue import pack
from invoker.errors import Cancelled
from invoker.protocols.toolbridge.prometheus import GAUGES, families
from invoker.protocols.toolbridge.service.bridge import Bridge
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.toolcall import Asked
from invoker.telemetry.board import Board, Row
from invoker.telemetry.metrics import Metrics
from tests.attach.around import around
from tests.conftest import SLOW
from tests.opsdoc import AUDIT
from tests.transports.bridge import TRANSPORTS, Bridged, error_of, packed
from tests.transports.riff import form

LIMIT_S = 5.0


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


asquare.__name__ = "square"


@pytest.fixture(params=TRANSPORTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_T150_T151_T152_health(kind, tmp_path):
    """Over the wire, with the dependencies that there are; an unknown name is NOT_FOUND."""
    settings = BridgeSettings(audit=str(tmp_path / "no" / "audit"), critical=("audit",))
    with Bridged(kind, form(kind, square, asquare), settings=settings) as served:
        told = served.rpc("HealthCheck", service="tools")
        assert told.status == pb.HealthCheckResponse.SERVING
        unknown = dict.fromkeys(("audit", "isolation", "llm"), pb.HealthCheckResponse.UNKNOWN)
        assert dict(told.dependencies) == unknown
        served.session()
        assert served.execute("square", 5).success  # T-168: a sink that fails fails no call
        served.bridge.watch.audit.flush()
        told = served.rpc("HealthCheck")
        assert told.status == pb.HealthCheckResponse.NOT_SERVING
        assert dict(told.dependencies) == unknown | {"audit": pb.HealthCheckResponse.NOT_SERVING}
        assert served.rpc("GetMetrics").metrics["audit.errors"].integer_value == 1
        with pytest.raises(grpc.RpcError) as caught:
            served.rpc("HealthCheck", service="nope")
        assert error_of(caught.value)[0] == grpc.StatusCode.NOT_FOUND
        served.bridge.watch.close()


def test_T153_a_draining_server_says_so_and_takes_no_sessions(kind):
    """Clients that are there already hear it."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        served.driver.engine.is_draining = True
        try:
            assert served.rpc("HealthCheck").status == pb.HealthCheckResponse.NOT_SERVING
            with pytest.raises(grpc.RpcError) as caught:
                served.session("s2")
            assert error_of(caught.value)[0] == grpc.StatusCode.UNAVAILABLE
        finally:
            served.driver.engine.is_draining = False


def test_T154_T155_metrics(kind):
    """What was called, how it ended, and what is so right now."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session(enable_telemetry=True)
        for _ in range(3):
            served.execute("square", 5)
        served.execute("square", "no number")
        served.execute("nope", 5)
        made = served.rpc("GetMetrics").metrics
        ids = {match[1] for name in made if (match := re.fullmatch(r"tool\.(.*)\.duration_ms", name))}
        (tool,) = ids - {"unknown"}
        told = {name: value.integer_value for name, value in made.items() if not value.HasField("histogram")}
        assert told["sessions.active"] == told["sessions.created"] == 1
        assert told[f"tool.{tool}.calls"] == 4
        assert told[f"tool.{tool}.errors.ValidationError"] == 1
        assert told[f"tool.{tool}.active"] == told[f"tool.{tool}.zombies"] == 0
        assert told["tool.unknown.errors.ToolNotFound"] == 1
        assert told["session.s1.calls"] == 5
        assert made[f"tool.{tool}.duration_ms"].histogram.count == 4
        request = pb.GetMetricsRequest()
        request.start_time.seconds, request.end_time.seconds = 2, 1
        with pytest.raises(grpc.RpcError) as caught:
            served.send("GetMetrics", request)
        assert error_of(caught.value)[0] == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("kind", ["aio", "direct-lending"])
def test_T054_T057_a_deaf_tool_answers_in_time_and_is_a_zombie_until_it_leaves(kind):
    """In-band; its place stays taken, then frees."""
    inside, go = threading.Event(), threading.Event()

    @function(timeout_s=0.1, max_calls=1)
    def deaf(x: int) -> int:
        inside.set()
        assert go.wait(LIMIT_S)
        return x

    with Bridged(kind, deaf) as served:
        served.session()
        began = time.monotonic()
        answer = served.rpc("ExecuteTool", session_id="s1", tool_id="deaf", args=[packed(1)], timeout_ms=60_000)
        took = time.monotonic() - began
        assert (answer.success, answer.error.type) == (False, "TimeoutError")
        assert answer.error.details["timeout_ms"] == "100"
        assert took >= 0.1
        assert zombies(served) == 1
        full = served.execute("deaf", 1)
        assert (full.error.type, full.error.details["code"]) == ("ResourceExhausted", "concurrency")
        assert full.error.details["limit"] == "1"
        go.set()
        until(lambda: zombies(served) == 0)
        until(lambda: served.execute("deaf", 2).success)


@pytest.mark.parametrize("is_shared", [False, True])
def test_T057_T155_each_of_hundreds_of_tools_is_told_exactly(is_shared):
    """The last one of the catalogue like the first: what runs, what goes on behind its end; by one process or many."""
    inside, go = threading.Semaphore(0), threading.Event()

    def made(number):
        @function(name=f"a_tool_with_a_name_of_some_length_{number}", timeout_s=0.2 * SLOW if number % 2 else None)
        def deaf(x: int) -> int:
            inside.release()
            assert go.wait(LIMIT_S * SLOW)
            return x

        return deaf

    with Bridged("aio", *(made(number) for number in range(400))) as served:
        served.session()
        names = [one.name for one in served.bridge.host_sessions.tools]
        with ThreadPoolExecutor() as pool:
            calls = [pool.submit(served.execute, names[number], 1) for number in (0, 1, 398, 399)]
            for _ in calls:
                assert inside.acquire(timeout=LIMIT_S * SLOW)
            for one in (calls[1], calls[3]):
                assert one.result(LIMIT_S * SLOW).error.type == "TimeoutError"
            if is_shared:
                board = Board.make()
                board.write(1, Row(1, numbers=served.bridge.watch.numbers()))
                board.write(2, Row(2, numbers=served.bridge.watch.numbers()))
                served.bridge.watch._summed = board.total
            metrics = served.rpc("GetMetrics").metrics
            go.set()
        told = {name: value.integer_value for name, value in metrics.items() if not value.HasField("histogram")}
        found = {name: count for name, count in told.items() if name.endswith((".active", ".zombies")) and count}
        ids = [served.bridge.host_sessions.tools.find(one).id for one in names]
        many = 2 if is_shared else 1
        assert found == {
            "sessions.active": many,
            f"tool.{ids[0]}.active": many,
            f"tool.{ids[398]}.active": many,
            f"tool.{ids[1]}.zombies": many,
            f"tool.{ids[399]}.zombies": many,
        }
        assert sum(name.endswith(".active") for name in told) == 401
        assert told[f"tool.{ids[399]}.errors.TimeoutError"] == many


def test_T059_a_rate_is_per_session_and_tool(kind):
    """The answer says when to come again; the metric counts it; T-051: a bad argument uses nothing up."""

    @function(calls_per_minute=2)
    def rated(x: int) -> int:
        return x

    @function(calls_per_minute=2, name="rated")
    async def arated(x: int) -> int:
        return x

    with Bridged(kind, form(kind, rated, arated)) as served:
        served.session()
        for _ in range(3):
            assert served.execute("rated", "bad").error.type == "ValidationError"
        assert [served.execute("rated", 1).success for _ in range(3)] == [True, True, False]
        error = served.execute("rated", 1).error
        assert (error.type, error.details["code"], error.details["limit"]) == ("ResourceExhausted", "rate_limit", "2")
        assert 0 < int(error.details["retry_after_ms"]) <= 60_000
        served.session("s2")
        assert served.rpc("ExecuteTool", session_id="s2", tool_id="rated", args=[packed(1)]).success
        assert served.rpc("GetMetrics").metrics["rate_limited"].integer_value == 2


def test_T167_each_call_has_a_line_whatever_became_of_it(kind, tmp_path):
    """With its hash, never with its arguments."""
    path = tmp_path / "audit.log"
    with Bridged(kind, form(kind, square, asquare), settings=BridgeSettings(audit=str(path))) as served:
        served.session()
        served.execute("square", 12345, request_id="r1")
        served.execute("square", "no number")
        served.execute("nope", 5)
        served.bridge.watch.close()
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    assert [(one["outcome"], one["error_type"]) for one in lines] == [
        ("ok", ""), ("error", "ValidationError"), ("error", "ToolNotFound"),
    ]  # fmt: skip
    assert {one["session_id"] for one in lines} == {"s1"}
    assert all(re.fullmatch(r"ipv4:127\.0\.0\.1:\d+", one["peer"]) and one["identity"] == "" for one in lines)
    assert (lines[0]["request_id"], lines[0]["via"]) == ("r1", "execute")
    assert "12345" not in path.read_text().replace(lines[0]["args_sha256"], "")
    assert "args" not in lines[0]


def test_T167_streams_batches_and_calls_without_a_session_have_lines_too(kind, tmp_path):
    """One for each item of a batch; an answer that is not new runs nothing, and has one that says so."""
    path = tmp_path / "audit.log"
    with Bridged(kind, form(kind, square, asquare), settings=BridgeSettings(audit=str(path))) as served:
        served.session(enable_caching=True)
        items = [pb.ToolCallItem(index=n, tool_id="square", args=[packed(value)]) for n, value in enumerate((1, "x"))]
        served.rpc("BatchExecuteTools", session_id="s1", items=items)
        served.rpc("StreamTool", session_id="s1", tool_id="square", args=[packed(2)])
        for _ in range(2):
            assert served.execute("square", 3, request_id="again").success
        assert served.execute("square", 4, session_id="nobody").error.type == "SessionExpired"
        metrics = served.rpc("GetMetrics").metrics
        served.bridge.watch.close()
    told = {name: metrics[name].integer_value for name in ("batch.items", "stream.chunks", "cache.hits")}
    assert told == {"batch.items": 2, "stream.chunks": 1, "cache.hits": 1}
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    assert sorted((one["via"], one["outcome"], one["error_type"]) for one in lines) == [
        ("batch", "error", "ValidationError"), ("batch", "ok", ""), ("execute", "cached", ""),
        ("execute", "error", "SessionExpired"), ("execute", "ok", ""), ("stream", "ok", ""),
    ]  # fmt: skip
    (ran, again) = (one for one in lines if one["request_id"] == "again")
    assert (ran["outcome"], again["outcome"]) == ("ok", "cached")
    for name in ("tool_id", "session_id", "args_sha256"):
        assert ran[name] == again[name]
    assert metrics[f"tool.{ran['tool_id']}.calls"].integer_value == 4  # what ran, of which one was refused


def test_arguments_are_in_the_audit_log_if_the_operator_asks_for_them(tmp_path):
    """Without those that he hides."""
    path = tmp_path / "audit.log"
    settings = BridgeSettings(audit=str(path), audit_args=("x",))
    bridge = Bridge(around(square), settings)
    call = SimpleNamespace(
        asked=Asked("s", "square", (pack(5),), {"y": pack(6)}), tool=bridge.host_sessions.tools.find("square"),
        via="execute", error=Cancelled("gone"), took_s=0.0, session=None, correlation_id="c",
    )  # fmt: skip
    for observer in bridge.host_sessions.observers:
        observer(call)
    bridge.watch.close()
    line = json.loads(path.read_text())
    assert line["args"] == {"x": "[redacted]", "y": 6}
    assert set(line) == set(AUDIT)  # the reference page tells of each


async def test_the_numbers_of_the_bridge_are_on_the_page_of_metrics():
    """Where it is served."""
    bridge = Bridge(around(square), BridgeSettings())
    tool = bridge.host_sessions.tools.find("square")
    for observer in bridge.host_sessions.observers:
        observer(SimpleNamespace(tool=tool, error=None, took_s=0.02, via="batch", session=None))
    text = Metrics(bridge.watch.numbers, lambda: [families]).render()[1].decode()
    assert f'invoker_tool_calls_total{{outcome="ok",tool="{tool.id}"}} 1.0' in text
    assert f'invoker_tool_duration_seconds_bucket{{le="0.025",tool="{tool.id}"}} 1.0' in text
    assert "invoker_tool_batch_items_total 1.0" in text
    assert all(f"{name} 0.0" in text for name in GAUGES)


def zombies(served: Any) -> int:
    """As GetMetrics tells it, of the only tool."""
    metrics = served.rpc("GetMetrics").metrics
    return sum(value.integer_value for name, value in metrics.items() if name.endswith(".zombies"))


def until(condition: Any) -> None:
    """Wait for the other side."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
