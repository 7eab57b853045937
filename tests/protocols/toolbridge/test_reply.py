"""Responses of tool calls, as protobuf reads them."""

from __future__ import annotations

import pytest
from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack
from invoker.errors import Overloaded
from invoker.protocols.toolbridge.reply import call_response, field, metrics_of
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall
from tests.protocols.toolbridge.calls import emitted, host_sessions_with
from tests.protocols.toolbridge.hosts import known


def ended(value: object, request_id: str, took_s: float, cpu_ns: int = 0, memory_bytes: int = 0) -> ToolCall:
    host_sessions = host_sessions_with()
    call = ToolCall(host_sessions, Asked("s1", "square", [pack(1)], request_id=request_id), "execute")
    call.begin(known(host_sessions))
    call.emitted(emitted(value))
    call.finish(None)
    call.took_s, call.cpu_ns, call.memory_bytes = took_s, cpu_ns, memory_bytes
    return call


@pytest.mark.parametrize("value", [None, 5, "x" * 50, "x" * 127, "x" * 128, b"y" * 70_000])
@pytest.mark.parametrize("request_id", ["", "r", "é" * 100])
@pytest.mark.parametrize("took_s", [0.0, 0.0009, 0.127, 300.0])
@pytest.mark.parametrize(("cpu_ns", "memory_bytes"), [(0, 0), (999_999, 0), (1_000_000, 0), (70_000_000, 2**40)])
def test_T064_a_success_is_what_protobuf_would_write(value, request_id, took_s, cpu_ns, memory_bytes):
    """Byte for byte."""
    expected = pb.ToolCallResponse(
        success=True,
        result=any_pb2.Any.FromString(pack(value)),
        metrics=pb.ExecutionMetrics(
            duration_ms=int(took_s * 1000), cpu_time_ms=cpu_ns // 1_000_000, memory_bytes=memory_bytes
        ),
        request_id=request_id,
    )
    assert call_response(ended(value, request_id, took_s, cpu_ns, memory_bytes)) == expected.SerializeToString()


def test_T065_a_failure_has_no_result():
    """It has an error, the metrics, and the request id."""
    host_sessions = host_sessions_with()
    call = ToolCall(host_sessions, Asked("s1", "square", [pack(1)], request_id="r"), "execute")
    call.begin(known(host_sessions))
    call.finish(Overloaded("full"))
    response = pb.ToolCallResponse.FromString(call_response(call))
    assert not response.success
    assert not response.HasField("result")
    assert (response.error.type, response.request_id) == ("ResourceExhausted", "r")
    assert response.HasField("metrics")


def test_the_parts_are_those_of_the_wire():
    """Fields of bytes, and times in milliseconds."""
    assert field(b"\x2a", b"ab") == b"\x2a\x02ab"
    assert metrics_of(ended(1, "", 1.5)).duration_ms == 1500
