"""Tools of the session's host, called by ExecuteTool (T-171)."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.conftest import SLOW
from tests.protocols.toolbridge.service.test_hostscope import HOST, Elixir, functions, with_host
from tests.transports.bridge import TRANSPORTS, Bridged, packed, unpacked
from tests.transports.riff import eventually

METHOD = "/dspex.bridge.SnakepitBridge/ExecuteTool"


@pytest.fixture(params=TRANSPORTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def waits(key: str = "") -> str:
    """A tool of the host without an end."""
    await asyncio.Event().wait()
    return key


def begin(bridged: Bridged, **fields: Any) -> Any:
    """Call the tool `waits` of the host, and do not wait for it."""
    request = pb.ToolCallRequest(session_id="s1", tool_id="callback:waits", **fields)
    serializers = pb.ToolCallRequest.SerializeToString, pb.ToolCallResponse.FromString
    return bridged.channel.unary_unary(METHOD, *serializers).future(request, timeout=10 * SLOW)


def test_T171_tools_of_the_host_are_called_by_their_names(kind: str, tmp_path: Path) -> None:
    """With the prefix, and bare where no local tool has the name; a stream is a list, and each call has its line."""
    path = tmp_path / "audit.log"
    with (
        Elixir(**HOST) as host,
        Bridged(kind, *functions(kind), settings=BridgeSettings(audit=str(path))) as bridged,
    ):
        with_host(bridged, host)
        for name in ("callback:lookup", "lookup"):
            response = bridged.execute(name, "ab", times=2)
            assert unpacked(response.result) == "ABAB", response
        assert unpacked(bridged.execute("callback:stream_words", 2).result) == ["word 0", "word 1"]
        error = bridged.execute("callback:refuse", 7).error
        assert (error.type, error.message, error.details["remote"]) == (
            "ValidationError",
            "the host takes no 7",
            "true",
        )
        assert bridged.execute("callback:nobody").error.type == "ToolNotFound"
        _, metadata, request = next(one for one in reversed(host.called) if one[0] == "ExecuteTool")
        assert (request.session_id, metadata["x-dspex-hops"]) == ("s1", "1")
        assert not bridged.bridge.host_sessions.sessions["s1"].operations
        bridged.bridge.watch.close()
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    assert [(one["via"], one["error_type"]) for one in lines] == [
        ("callback", ""), ("callback", ""), ("callback", ""), ("callback", "ValidationError"),
        ("callback", "ToolNotFound"),
    ]  # fmt: skip


def test_T171_a_session_without_a_host_has_no_such_tools(kind: str) -> None:
    with Bridged(kind, *functions(kind)) as bridged:
        bridged.session()
        assert bridged.execute("callback:lookup", "x").error.type == "ToolNotFound"


def test_T054_T058_calls_of_the_host_keep_the_limits_of_the_session(kind: str) -> None:
    """Of time and of calls at once; a negative time is refused."""
    elixir = Elixir(waits=waits)
    with elixir as host, Bridged(kind, *functions(kind)) as bridged:
        config = pb.SessionConfig(max_concurrent_tools=1)
        made = bridged.rpc("InitializeSession", session_id="s1", callback_address=host.address, config=config)
        assert made.success
        began = time.monotonic()
        error = begin(bridged, timeout_ms=300).result().error
        assert (error.type, error.details["timeout_ms"]) == ("TimeoutError", "300")
        assert time.monotonic() - began < 0.3 + 0.25 * SLOW
        elixir.run(host.gone.wait())
        assert begin(bridged, timeout_ms=-1).result().error.details["field"] == "timeout_ms"
        first = begin(bridged)
        assert eventually(lambda: bridged.bridge.host_sessions.sessions["s1"].tools == 1)
        error = begin(bridged).result().error
        assert (error.type, error.details["scope"]) == ("ResourceExhausted", "session")
        first.cancel()
        assert eventually(lambda: bridged.bridge.host_sessions.sessions["s1"].tools == 0)


def test_T014_a_forced_clean_up_ends_calls_of_the_host(kind: str) -> None:
    elixir = Elixir(waits=waits)
    with elixir as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        running = begin(bridged)
        elixir.run(host.begun.wait())
        busy = bridged.rpc("CleanupSession", session_id="s1")
        assert busy.error.details["active_operations"] == "1"
        assert bridged.rpc("CleanupSession", session_id="s1", force=True).success
        error = running.result().error
        assert (error.type, error.details["code"]) == ("SessionExpired", "cleaned")
        elixir.run(host.gone.wait())


def test_T171_a_caller_that_leaves_ends_the_call_of_the_host(kind: str) -> None:
    elixir = Elixir(waits=waits)
    with elixir as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        running = begin(bridged, args=[packed("x")])
        elixir.run(host.begun.wait())
        running.cancel()
        elixir.run(host.gone.wait())
        assert eventually(lambda: not bridged.bridge.host_sessions.sessions["s1"].operations)
        with pytest.raises(grpc.FutureCancelledError):
            running.result()


def test_T172_hops_of_a_host_that_calls_itself_through_us_are_counted(kind: str) -> None:
    with Elixir(**HOST) as host, Bridged(kind, *functions(kind)) as bridged:
        with_host(bridged, host)
        request = pb.ToolCallRequest(session_id="s1", tool_id="callback:lookup", args=[packed("x")])
        error = bridged.send("ExecuteTool", request, metadata=(("x-dspex-hops", "4"),)).error
        assert (error.type, error.details["code"]) == ("ResourceExhausted", "hops")
        assert host.called == [one for one in host.called if one[0] == "GetSessionTools"]
