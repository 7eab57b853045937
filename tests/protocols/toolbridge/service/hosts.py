"""A host of the tool bridge that serves tools of its own, for those who call in the other direction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack, unpack
from invoker.message import Metadata
from tests.conftest import SLOW

_SERVICE = "dspex.bridge.SnakepitBridge"


def any_of(value: Any) -> AnyMessage:
    return value if isinstance(value, AnyMessage) else AnyMessage.FromString(pack(value))


class Host:
    """Serves tools: plain functions, and generators as streaming ones.

    Args:
        tools: By name; they are called with the decoded arguments.

    Attributes:
        address: ``127.0.0.1:PORT``, once started.
        path: Of a Unix socket on which it listens as well; set before it starts.
        called: Name, metadata and request of each call.
        gone: Set when a stream of it was given up.
        channels: Peers that have called.
    """

    def __init__(self, **tools: Callable[..., Any]) -> None:
        self.tools = tools
        self.path: Path | None = None
        self.address = ""
        self.called: list[tuple[str, dict[str, Any], Any]] = []
        self.channels: set[str] = set()
        self.gone = asyncio.Event()
        self.begun = asyncio.Event()
        self.lists = asyncio.Event()
        self.lists.set()
        self._server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))

    async def __aenter__(self) -> Self:
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        handlers = {
            "GetSessionTools": unary(
                self._list, pb.GetSessionToolsRequest.FromString, pb.GetSessionToolsResponse.SerializeToString
            ),
            "ExecuteTool": unary(self._execute, pb.ToolCallRequest.FromString, pb.ToolCallResponse.SerializeToString),
            "StreamTool": stream(self._stream, pb.ToolStreamRequest.FromString, pb.ToolStreamChunk.SerializeToString),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        if self.path is not None:
            self._server.add_insecure_port(f"unix:{quote(str(self.path))}")
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Die: whatever runs is cut."""
        await self._server.stop(0)

    async def _list(self, request: pb.GetSessionToolsRequest, context: Any) -> pb.GetSessionToolsResponse:
        await self.lists.wait()
        self._note("GetSessionTools", request, context)
        return pb.GetSessionToolsResponse(
            tools=[
                pb.ToolSpec(tool_id=f"Host.{name}", name=name, type=pb.STREAMING if name.startswith("stream") else 0)
                for name in self.tools
            ]
        )

    async def _execute(self, request: pb.ToolCallRequest, context: Any) -> pb.ToolCallResponse:
        self._note("ExecuteTool", request, context)
        self.begun.set()
        try:
            result = self._call(request)
            if asyncio.iscoroutine(result):
                result = await result
        except asyncio.CancelledError:
            self.gone.set()
            raise
        except Exception as error:
            details = {"code": "mine"}
            return pb.ToolCallResponse(error=pb.ErrorInfo(type="ValidationError", message=str(error), details=details))
        return pb.ToolCallResponse(success=True, result=any_of(result))

    async def _stream(self, request: pb.ToolStreamRequest, context: Any) -> AsyncIterator[pb.ToolStreamChunk]:
        self._note("StreamTool", request, context)
        number = data = 0
        try:
            for value in self._call(request):
                if isinstance(value, Exception):
                    yield pb.ToolStreamChunk(error=pb.ErrorInfo(type="InternalError", message=str(value)))
                    return
                if isinstance(value, Metadata):
                    told = pb.StreamMetadata(key=value.key, value=any_of(value.value))
                    yield pb.ToolStreamChunk(sequence=number, metadata=told)
                else:
                    yield pb.ToolStreamChunk(sequence=number, data=any_of(value))
                    data += 1
                self.begun.set()
                number += 1
                await asyncio.sleep(0)
            yield pb.ToolStreamChunk(sequence=number, complete=pb.CompleteSignal(total_chunks=data))
        except (asyncio.CancelledError, GeneratorExit):
            self.gone.set()
            raise

    def _call(self, request: Any) -> Any:
        args = [unpack(one.SerializeToString()) for one in request.args]
        kwargs = {name: unpack(one.SerializeToString()) for name, one in request.kwargs.items()}
        return self.tools[request.tool_id.removeprefix("Host.")](*args, **kwargs)

    def _note(self, rpc: str, request: Any, context: Any) -> None:
        self.channels.add(context.peer())
        self.called.append((rpc, dict(context.invocation_metadata()), request))


class Elixir:
    """A `Host` in a thread with a loop of its own, since the tests here block."""

    def __init__(self, **tools: Any) -> None:
        self._tools = tools
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="host")
        self.host: Host

    def __enter__(self) -> Host:
        self._thread.start()
        self.host = self.run(self._begin())
        return self.host

    def __exit__(self, *_: object) -> None:
        self.run(self.host.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, made: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(made, self._loop).result(5 * SLOW)

    async def _begin(self) -> Host:
        return await Host(**self._tools).__aenter__()
