"""A bare grpc.aio echo of riff messages, without any protocol logic: the baseline for invoker.

Usage: ``python -m benchmarks.bare [echo|zip|headers|sleep|executor]``; prints ``grpc=HOST:PORT`` and serves until it is
killed. Each other word is a handwritten version of the function of that name in benchmarks/functions.py.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import grpc.aio

from invoker._pb.riff import riff_rpc_pb2 as pb

Servicer = grpc.aio.ServicerContext[Any, Any]


async def _echo(_: object, context: Servicer) -> None:
    await context.read()
    while (signal := await context.read()) is not grpc.aio.EOF:
        data = signal.data
        await context.write(pb.OutputSignal(data=pb.OutputFrame(payload=data.payload, contentType=data.contentType)))


async def _zip(_: object, context: Servicer) -> None:
    await context.read()
    while (left := await context.read()) is not grpc.aio.EOF:
        right = await context.read()
        payload = left.data.payload + right.data.payload
        await context.write(pb.OutputSignal(data=pb.OutputFrame(payload=payload, contentType=left.data.contentType)))


async def _headers(_: object, context: Servicer) -> None:
    await context.read()
    while (signal := await context.read()) is not grpc.aio.EOF:
        data = signal.data
        frame = pb.OutputFrame(payload=data.payload, contentType=data.contentType, headers=data.headers)
        await context.write(pb.OutputSignal(data=frame))


async def _sleep(_: object, context: Servicer) -> None:
    await context.read()
    while (signal := await context.read()) is not grpc.aio.EOF:
        data = signal.data
        await asyncio.sleep(0.001)
        await context.write(pb.OutputSignal(data=pb.OutputFrame(payload=data.payload, contentType=data.contentType)))


async def _executor(_: object, context: Servicer) -> None:
    loop = asyncio.get_running_loop()
    await context.read()
    while (signal := await context.read()) is not grpc.aio.EOF:
        data = signal.data
        await loop.run_in_executor(None, len, data.payload)
        await context.write(pb.OutputSignal(data=pb.OutputFrame(payload=data.payload, contentType=data.contentType)))


_WORK = {"echo": _echo, "zip": _zip, "headers": _headers, "sleep": _sleep, "executor": _executor}


async def _serve(work: str) -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.max_concurrent_streams", 2**31 - 1)])
    handler = grpc.stream_stream_rpc_method_handler(
        _WORK[work],
        request_deserializer=pb.InputSignal.FromString,
        response_serializer=pb.OutputSignal.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("streaming.Riff", {"Invoke": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"ready: grpc=127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "echo"
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(chosen))
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(chosen))
