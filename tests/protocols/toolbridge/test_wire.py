"""Requests as they are read: each Any is its bytes."""

from __future__ import annotations

from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack
from invoker.protocols.toolbridge.wire import BatchRequest, CallRequest, StreamRequest


def any_of(value: object) -> any_pb2.Any:
    return any_pb2.Any.FromString(pack(value))


def test_a_call_is_read_as_it_was_sent():
    """All fields, and the arguments as bytes."""
    sent = pb.ToolCallRequest(
        session_id="s", tool_id="t", args=[any_of(1)], kwargs={"a": any_of("x")}, request_id="r", timeout_ms=7,
        context={"k": "v"},
    )  # fmt: skip
    read = CallRequest.FromString(sent.SerializeToString())
    assert list(read.args) == [pack(1)]
    assert dict(read.kwargs) == {"a": pack("x")}
    assert (read.session_id, read.tool_id, read.request_id, read.timeout_ms) == ("s", "t", "r", 7)
    assert dict(read.context) == {"k": "v"}


def test_a_stream_and_a_batch_are_read_as_they_were_sent():
    """With what is nested in them."""
    config = pb.StreamConfig(chunk_size=3, backpressure_enabled=True)
    stream = StreamRequest.FromString(pb.ToolStreamRequest(args=[any_of(1)], config=config).SerializeToString())
    assert (list(stream.args), stream.config.chunk_size, stream.config.backpressure_enabled) == ([pack(1)], 3, True)
    items = [pb.ToolCallItem(index=9, tool_id="t", args=[any_of(2)], kwargs={"a": any_of(None)})]
    batch = BatchRequest.FromString(
        pb.BatchToolCallRequest(batch_id="b", items=items, config=pb.BatchConfig(max_parallel=2)).SerializeToString()
    )
    (item,) = batch.items
    assert (item.index, list(item.args), dict(item.kwargs)) == (9, [pack(2)], {"a": pack(None)})
    assert (batch.batch_id, batch.config.max_parallel) == ("b", 2)
