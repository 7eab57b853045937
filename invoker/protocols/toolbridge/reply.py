"""Assembles the responses to tool calls byte for byte as protobuf writes them, at a fraction of the cost.

The result of a call is already a serialised ``Any``, and most responses add only a few bytes. So these bytes are put
around the result, which is not parsed and serialised again. A response with an error is made by protobuf.
"""

from __future__ import annotations

from typing import Final

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.varint import SHORT, varint
from invoker.errors import InvocationError
from invoker.protocols.toolbridge.errors import translated
from invoker.protocols.toolbridge.toolcall import ToolCall

_SUCCESS: Final = b"\x08\x01"
_RESULT, _METRICS, _REQUEST_ID = b"\x12", b"\x22", b"\x2a"
_EMPTY_METRICS: Final = b"\x22\x00"
_MS_S, _MS_NS = 0.001, 1_000_000


def call_response(call: ToolCall) -> bytes:
    """The serialised `ToolCallResponse` for a call that has ended."""
    if call.error is not None:
        return _failure(call, call.error)
    try:
        result = call.result()
    except InvocationError as error:
        return _failure(call, error)
    size = len(result)
    head = b"\x08\x01\x12%c" % size if size < SHORT else _SUCCESS + _RESULT + varint(size)
    is_little = call.took_s < _MS_S and call.cpu_ns < _MS_NS and not call.memory_bytes
    metrics = _EMPTY_METRICS if is_little else field(_METRICS, metrics_of(call).SerializeToString())
    request_id = call.asked.request_id
    if request_id:
        return b"%b%b%b%b" % (head, result, metrics, field(_REQUEST_ID, request_id.encode()))
    return b"%b%b%b" % (head, result, metrics)


def metrics_of(call: ToolCall) -> pb.ExecutionMetrics:
    """The time and memory of a call, as a message."""
    return pb.ExecutionMetrics(
        duration_ms=int(call.took_s * 1000), cpu_time_ms=call.cpu_ns // _MS_NS, memory_bytes=call.memory_bytes
    )


def field(tag: bytes, value: bytes) -> bytes:
    """Serialise a field of a message: tag, length and bytes."""
    return tag + varint(len(value)) + value


def _failure(call: ToolCall, error: InvocationError) -> bytes:
    return pb.ToolCallResponse(
        error=translated(error).info(), metrics=metrics_of(call), request_id=call.asked.request_id
    ).SerializeToString()
