"""`buf curl` as a host: a Go stack, which learns the bridge from server reflection alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.test_bridge_node import NOT_FOUND
from tests.interop.test_buf import curl, documents
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(60)

BRIDGE = "/dspex.bridge.SnakepitBridge/"


@pytest.fixture(scope="module")
def bridge() -> Iterator[Served]:
    """The tools of the conformance suite, behind the bridge, with a session."""
    with serving("functions.conformance_toolbridge", env={"INVOKER_PROTOCOLS": "riff,http,toolbridge"}) as served:
        (made,) = ask(served, "InitializeSession", config={"enable_caching": True})
        assert made["success"]
        yield served


def ask(served: Served, method: str, **request: Any) -> list[dict[str, Any]]:
    """What a method answers, as the JSON of protobuf."""
    done = curl(served.grpc, BRIDGE + method, {"session_id": "buf", **request})
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def number(plain: int) -> dict[str, Any]:
    """A number as the JSON of protobuf writes it in an Any."""
    return {"@type": "type.googleapis.com/google.protobuf.Int64Value", "value": str(plain)}


def test_T001_reflection_lists_the_bridge(bridge: Served) -> None:
    """Beside health and reflection."""
    done = curl(bridge.grpc, flags=("--list-services",))
    assert "dspex.bridge.SnakepitBridge" in done.stdout.split(), done.stderr


def test_T064_a_call_by_reflection(bridge: Served) -> None:
    """The result is an Any that Go can read."""
    (done,) = ask(bridge, "ExecuteTool", tool_id="add", args=[number(20)], kwargs={"b": number(22)}, request_id="r")
    assert done["success"]
    assert done["result"] == number(42)
    assert done["requestId"] == "r"


def test_T076_a_stream_by_reflection(bridge: Served) -> None:
    """Chunks in order, then complete."""
    chunks = ask(bridge, "StreamTool", tool_id="counted", args=[number(3)])
    assert [chunk.get("sequence", 0) for chunk in chunks] == [0, 1, 2, 3]
    assert [chunk["data"] for chunk in chunks[:3]] == [number(n) for n in range(3)]
    assert chunks[-1]["complete"]["totalChunks"] == 3


def test_T088_a_batch_by_reflection(bridge: Served) -> None:
    """One bad item fails alone."""
    items = [{"index": 1, "toolId": "add", "args": [number(1)]}, {"index": 2, "toolId": "nothing"}]
    (done,) = ask(bridge, "BatchExecuteTools", items=items)
    good, bad = done["results"]
    assert good["result"] == number(3)
    assert bad["error"]["type"] == "ToolNotFound"


def test_T115_variables_by_reflection(bridge: Served) -> None:
    """A number, and a list of several kinds."""
    struct = {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"a": [1.5, True, None, "x"]}}
    for one in (number(7), struct):
        (stored,) = ask(bridge, "SetSessionVariable", variable_name="x", value=one, create_if_missing=True)
        assert stored["success"]
        (there,) = ask(bridge, "GetSessionVariable", variable_name="x")
        assert there["value"] == one


def test_T160_the_status_is_the_exit_code(bridge: Served) -> None:
    """NOT_FOUND is 5, which buf shifts by three bits."""
    done = curl(bridge.grpc, BRIDGE + "GetSessionInfo", {"session_id": "another"})
    assert done.returncode == NOT_FOUND << 3, json.dumps(done.stdout)
