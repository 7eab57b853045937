"""A host in Node on @grpc/grpc-js and its proto-loader: another stack for gRPC, HTTP/2 and protobuf than ours.

What it shares with the server is `proto/dspex/bridge.proto`, which is what a host has in its hands.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from tests.conftest import SLOW
from tests.interop.tools import CLIENT, answered
from tests.serving import ROOT, Served, serving

pytestmark = pytest.mark.timeout(60)

PROTO = ROOT / "proto/dspex/bridge.proto"
OK, CANCELLED, DEADLINE_EXCEEDED, NOT_FOUND = 0, 1, 4, 5


@dataclass(frozen=True)
class Step:
    """What one rpc gave."""

    messages: list[dict[str, Any]]
    code: int
    details: str
    trailer: str
    inner: list[dict[str, Any]] | None = field(default=None)

    @property
    def only(self) -> dict[str, Any]:
        """The answer of a unary rpc."""
        (message,) = self.messages
        return message

    @property
    def told(self) -> pb.ErrorInfo:
        """The error in the trailer."""
        return pb.ErrorInfo.FromString(base64.b64decode(self.trailer))


@pytest.fixture(scope="module")
def bridge() -> Iterator[Served]:
    """The tools of the conformance suite, behind the bridge."""
    env = {"INVOKER_PROTOCOLS": "riff,http,toolbridge"}
    with serving("functions.conformance_toolbridge", env=env) as served:
        yield served


def host(address: str, *steps: dict[str, Any], session: str = "node", **metadata: str) -> list[Step]:
    """Make a session, take these steps in it, clean it up; give what the steps gave."""
    named = [{**step, "request": {"session_id": session, **step.get("request", {})}} for step in steps]
    begin = {"method": "InitializeSession", "request": {"session_id": session}}
    end = {"method": "CleanupSession", "request": {"session_id": session, "force": True}}
    plan = {"address": address, "proto": str(PROTO), "metadata": metadata, "steps": [begin, *named, end]}
    first, *given, last = [Step(**step) for step in answered(CLIENT.with_name("bridge.js"), plan, limit_s=20)]
    assert first.only["success"], first
    assert last.code == OK, last
    return given


def value(kind: str, plain: Any) -> dict[str, Any]:
    """A value of a type of protobuf."""
    return {"type": kind, "json": plain if kind in ("ListValue", "Struct") else {"value": plain}}


def call(tool: str, *args: dict[str, Any], **kwargs: dict[str, Any]) -> dict[str, Any]:
    """A step that calls a tool."""
    return {"method": "ExecuteTool", "request": {"tool_id": tool, "args": args, "kwargs": kwargs, "request_id": "r"}}


def stream(tool: str, *args: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A step that streams a tool."""
    return {"method": "StreamTool", "request": {"tool_id": tool, "args": args, "stream_id": "s"}, **more}


def put(name: str, one: dict[str, Any]) -> dict[str, Any]:
    """A step that sets a variable."""
    request = {"variable_name": name, "value": one, "create_if_missing": True}
    return {"method": "SetSessionVariable", "request": request}


def test_T001_a_session_and_its_tools(bridge: Served) -> None:
    """What is told of it, and of the tools."""
    info, tools = host(bridge.grpc, {"method": "GetSessionInfo"}, {"method": "GetSessionTools"})
    names = [tool["name"] for tool in tools.only["tools"]]
    assert names == sorted(names)
    assert info.only["tool_count"] == len(names)
    add = next(tool for tool in tools.only["tools"] if tool["name"] == "add")
    assert [(one["name"], one["elixir_type"]) for one in add["arguments"]] == [("a", "integer"), ("b", "integer")]


def test_T064_calls_by_position_and_by_name(bridge: Served) -> None:
    """The result is typed, and the request's id comes back."""
    one, two = value("Int64Value", "20"), value("Int64Value", "22")
    for done in host(bridge.grpc, call("add", one, two), call("add", a=one, b=two)):
        assert done.only["success"]
        assert done.only["result"] == {"type": "Int64Value", "json": {"value": "42"}}
        assert done.only["request_id"] == "r"


def test_T097_values_of_all_kinds(bridge: Served) -> None:
    """Each comes back as it went."""
    values = [
        value("StringValue", "日本"),
        value("BoolValue", True),
        value("Int64Value", "-9223372036854775808"),
        value("DoubleValue", 1.5),
        value("BytesValue", "AP8="),
        value("ListValue", {"values": [{"numberValue": 1.5}, {"stringValue": "x"}]}),
        value("Struct", {"fields": {"a": {"boolValue": True}}}),
    ]
    done = host(bridge.grpc, *(call("echo", one) for one in values))
    assert [step.only["result"] for step in done] == values


def test_T065_errors_are_in_band(bridge: Served) -> None:
    """The rpc ends with OK; the next call works."""
    text = value("StringValue", "boom")
    unbound, raised, fine = host(bridge.grpc, call("add"), call("raising", text), call("add", value("Int64Value", "1")))
    assert (unbound.code, unbound.only["success"]) == (OK, False)
    assert (unbound.only["error"]["type"], unbound.only["error"]["details"]["code"]) == (
        "ValidationError",
        "missing_arg",
    )
    assert raised.only["error"]["type"] == "InternalError"
    assert "boom" in raised.only["error"]["message"]
    assert fine.only["success"]


def test_T160_other_errors_are_a_status_with_a_trailer(bridge: Served) -> None:
    """The trailer is an ErrorInfo."""
    (done,) = host(bridge.grpc, {"method": "GetSessionInfo", "request": {"session_id": "another"}})
    assert (done.code, done.messages) == (NOT_FOUND, [])
    assert (done.told.type, done.told.details["code"]) == ("SessionExpired", "unknown")


def test_T076_a_stream(bridge: Served) -> None:
    """Numbered chunks, and complete at the end."""
    (done,) = host(bridge.grpc, stream("counted", value("Int64Value", "3")))
    assert done.code == OK
    assert [chunk["sequence"] for chunk in done.messages] == [0, 1, 2, 3]
    assert {chunk["stream_id"] for chunk in done.messages} == {"s"}
    assert [chunk["content"] for chunk in done.messages] == ["data", "data", "data", "complete"]
    assert [chunk["data"]["json"]["value"] for chunk in done.messages[:3]] == ["0", "1", "2"]
    assert done.messages[-1]["complete"]["total_chunks"] == 3


def test_T083_a_stream_that_is_cancelled(bridge: Served) -> None:
    """The client sees CANCELLED, and the generator is closed."""
    key = value("StringValue", "endless.closed")
    before, left = host(bridge.grpc, call("marks", key), stream("endless", cancelAfter=5))
    assert left.code == CANCELLED
    assert len(left.messages) >= 5
    (after,) = host(bridge.grpc, call("marks", key))
    assert int(after.only["result"]["json"]["value"]) == int(before.only["result"]["json"]["value"]) + 1


def test_T056_a_deadline_of_the_client(bridge: Served) -> None:
    """It ends the rpc; or the bridge, which knows it, is first."""
    seconds = value("DoubleValue", 60)
    (done,) = host(bridge.grpc, {**call("waiting", seconds), "deadlineMs": 300 * SLOW})
    if done.code == OK:
        assert done.only["error"]["type"] == "TimeoutError"
    else:
        assert done.code == DEADLINE_EXCEEDED


def test_T088_a_batch(bridge: Served) -> None:
    """Results in order, each with its index."""
    items = [{"index": n, "tool_id": "add", "args": [value("Int64Value", str(n))]} for n in (5, 6, 7)]
    items.append({"index": 1, "tool_id": "nothing"})
    request = {"items": items, "batch_id": "b", "config": {"parallel": True}}
    (done,) = host(bridge.grpc, {"method": "BatchExecuteTools", "request": request})
    assert [one["index"] for one in done.only["results"]] == [5, 6, 7, 1]
    assert [one["success"] for one in done.only["results"]] == [True, True, True, False]
    assert done.only["results"][0]["result"]["json"]["value"] == "7"
    assert done.only["metrics"]["failed_items"] == 1


def test_T117_variables(bridge: Served) -> None:
    """Set, read with metadata, listed, deleted."""
    seven = value("Int64Value", "7")
    get = {"method": "GetSessionVariable", "request": {"variable_name": "x", "include_metadata": True}}
    drop = {"method": "SetSessionVariable", "request": {"variable_name": "x"}}
    listed = {"method": "ListSessionVariables"}
    stored, there, rows, dropped, gone = host(bridge.grpc, put("x", seven), get, listed, drop, get)
    assert stored.only["success"]
    assert dropped.only["success"]
    assert there.only["value"] == seven
    assert (there.only["metadata"]["type"], there.only["metadata"]["created_by"]) == ("integer", "elixir")
    assert [row["name"] for row in rows.only["variables"]] == ["x"]
    assert not gone.only["exists"]


def test_T127_a_watch(bridge: Served) -> None:
    """What is there, then what another rpc of the same client changes meanwhile; then it leaves."""
    one, two = value("Int64Value", "1"), value("Int64Value", "2")
    watch = {"method": "WatchSessionVariables", "request": {"variable_names": ["x"], "include_initial": True}}
    change = put("x", two)
    change["request"]["session_id"] = "node"
    _, seen = host(bridge.grpc, put("x", one), {**watch, "meanwhile": [change], "cancelAfter": 2})
    assert seen.code == CANCELLED
    assert [(update["operation"], update["value"]) for update in seen.messages] == [("set", one), ("update", two)]
    assert seen.inner is not None
    assert seen.inner[0]["messages"][0]["success"]


def test_T175_metadata_of_the_caller_is_no_hindrance(bridge: Served) -> None:
    """Those that Snakepit sends with each rpc."""
    ids = {"x-snakepit-correlation-id": "c-1", "x-other": "y"}
    (done,) = host(bridge.grpc, call("add", value("Int64Value", "1")), **ids)
    assert done.only["success"]
