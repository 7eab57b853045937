"""A bare grpc.aio echo of riff messages, without any protocol logic: what ours is measured against.

Usage: ``python -m benchmarks.bare``; prints ``grpc=HOST:PORT`` and serves until it is killed.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio

from invoker._pb.riff import riff_rpc_pb2 as pb


async def _invoke(_: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    await context.read()
    while (signal := await context.read()) is not grpc.aio.EOF:
        data = signal.data
        await context.write(pb.OutputSignal(data=pb.OutputFrame(payload=data.payload, contentType=data.contentType)))


async def _serve() -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.max_concurrent_streams", 2**31 - 1)])
    handler = grpc.stream_stream_rpc_method_handler(
        _invoke,
        request_deserializer=pb.InputSignal.FromString,
        response_serializer=pb.OutputSignal.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("streaming.Riff", {"Invoke": handler}),))
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
