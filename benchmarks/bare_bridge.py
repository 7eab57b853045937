"""A bare grpc.aio tool bridge without any logic: the baseline for invoker's.

Usage: ``python -m benchmarks.bare_bridge``; prints ``grpc=HOST:PORT`` and serves until it is killed. ExecuteTool
returns the first argument, and StreamTool streams chunks of 64 KiB; the first argument is their number. Messages are
parsed and made by protobuf; there are no sessions, no tools, no checks, no limits and no logging.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.wrappers_pb2 import BytesValue, Int64Value

from invoker._pb.dspex import bridge_pb2 as pb

BLOCK = 65536


async def _execute(request: pb.ToolCallRequest, _: Any) -> pb.ToolCallResponse:
    return pb.ToolCallResponse(success=True, result=request.args[0], request_id=request.request_id, metrics={})


async def _stream(request: pb.ToolStreamRequest, _: Any) -> AsyncIterator[pb.ToolStreamChunk]:
    count, payload = Int64Value.FromString(request.args[0].value).value, bytes(BLOCK)
    for sequence in range(count):
        data = AnyMessage(
            type_url="type.googleapis.com/google.protobuf.BytesValue",
            value=BytesValue(value=payload).SerializeToString(),
        )
        yield pb.ToolStreamChunk(stream_id=request.stream_id, sequence=sequence, data=data)
    done = pb.CompleteSignal(total_chunks=count)
    yield pb.ToolStreamChunk(stream_id=request.stream_id, sequence=count, complete=done)


async def _serve() -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.max_concurrent_streams", 2**31 - 1)])
    handlers = {
        "ExecuteTool": grpc.unary_unary_rpc_method_handler(
            _execute,
            request_deserializer=pb.ToolCallRequest.FromString,
            response_serializer=pb.ToolCallResponse.SerializeToString,
        ),
        "StreamTool": grpc.unary_stream_rpc_method_handler(
            _stream,
            request_deserializer=pb.ToolStreamRequest.FromString,
            response_serializer=pb.ToolStreamChunk.SerializeToString,
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("dspex.bridge.SnakepitBridge", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"ready: grpc=127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve())
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve())
