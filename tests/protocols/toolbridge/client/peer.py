"""A bare tool bridge on grpc.aio: it knows the wire and a few tools by their names.

It shares no code with our own server but the generated messages, and packs values by protobuf alone, so the client is
tested against the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf import any_pb2, struct_pb2, wrappers_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.connect.quiet import quieten

SERVICE = pb.DESCRIPTOR.services_by_name["SnakepitBridge"]
NOW = Timestamp(seconds=1_700_000_000, nanos=5000)


def packed(value: Any) -> any_pb2.Any:
    """A value of a few kinds, packed without the codec that is tested."""
    made = any_pb2.Any()
    if isinstance(value, str):
        made.Pack(wrappers_pb2.StringValue(value=value))
    elif isinstance(value, bytes):
        made.Pack(wrappers_pb2.BytesValue(value=value))
    elif isinstance(value, int):
        made.Pack(wrappers_pb2.Int64Value(value=value))
    else:
        struct = struct_pb2.Struct()
        struct.update(value)
        made.Pack(struct)
    return made


def error(kind: str, message: str, **details: str) -> pb.ErrorInfo:
    return pb.ErrorInfo(type=kind, message=message, details=details, timestamp=NOW)


@dataclass
class Peer:
    """A running bridge and what it has seen.

    Attributes:
        target: ``host:port``.
        asked: The requests in their order, with the names of their methods.
        calls: How often ExecuteTool was called, by request id.
        metadata: Of the last rpc.
        cancelled: Set when a stream was cancelled by its caller.
        sessions: Those that are there.
        variables: Of all sessions.
    """

    target: str = ""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    metadata: dict[str, Any] = field(default_factory=dict)
    cancelled: threading.Event = field(default_factory=threading.Event)
    sessions: dict[str, pb.InitializeSessionRequest] = field(default_factory=dict)
    variables: dict[str, any_pb2.Any] = field(default_factory=dict)
    changed: asyncio.Queue[pb.VariableUpdate] = field(default_factory=asyncio.Queue)

    def last(self, method: str) -> Any:
        """The last request to a method."""
        return [request for name, request in self.asked if name == method][-1]

    async def refuse(self, context: Any, code: grpc.StatusCode, info: pb.ErrorInfo) -> None:
        await context.abort(code, info.message, (("dspex-error-bin", info.SerializeToString()),))

    async def InitializeSession(self, request: Any, context: Any) -> pb.InitializeSessionResponse:
        if self.sessions.get(request.session_id, request) != request:
            told = error("ValidationError", "the session is there", code="session_exists")
            return pb.InitializeSessionResponse(error=told)
        self.sessions[request.session_id] = request
        return pb.InitializeSessionResponse(success=True, tool_count=3, capabilities=["streaming", "batch"])

    async def CleanupSession(self, request: Any, context: Any) -> pb.StatusResponse:
        if not request.force and "busy" in request.session_id:
            return pb.StatusResponse(error=error("ValidationError", "tools run", code="active_operations"))
        self.sessions.pop(request.session_id, None)
        return pb.StatusResponse(success=True, message="gone")

    async def GetSessionInfo(self, request: Any, context: Any) -> pb.SessionInfo:
        if request.session_id not in self.sessions:
            told = error("SessionExpired", "no such session", code="unknown")
            await self.refuse(context, grpc.StatusCode.NOT_FOUND, told)
        return pb.SessionInfo(
            session_id=request.session_id, created_at=NOW, last_activity=NOW, tool_count=3, metadata={"a": "b"}
        )

    async def GetSessionTools(self, request: Any, context: Any) -> pb.GetSessionToolsResponse:
        spec = pb.ToolSpec(
            tool_id="mod:add",
            name="add",
            type=pb.STREAMING,
            arguments=[
                pb.ArgumentSpec(name="a", python_type="int", elixir_type="integer", required=True),
                pb.ArgumentSpec(
                    name="b",
                    python_type="int",
                    default_value=packed(7),
                    allowed_values=["7", "8"],
                    validation=pb.ValidationRules(min_value=0, max_length=3, custom_rules=["positive"]),
                ),
            ],
            return_type=pb.ArgumentSpec(name="return", python_type="int"),
            limits=pb.ResourceLimits(timeout_ms=1500, rate_limit_per_minute=9),
            examples=[">>> add(1)"],
        )
        return pb.GetSessionToolsResponse(tools=[spec])

    async def ExecuteTool(self, request: Any, context: Any) -> pb.ToolCallResponse:
        self.calls[request.request_id] += 1
        attempt = self.calls[request.request_id]
        match request.tool_id:
            case "flaky" if attempt < 3:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
            case "late":
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too late")
            case "denied":
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not you")
            case "missing":
                await context.abort(grpc.StatusCode.NOT_FOUND, "Tool missing not found")
            case "silent":
                await asyncio.Event().wait()
            case "fail":
                told = error("ValidationError", "no such argument", code="unknown_arg", field="x")
                return pb.ToolCallResponse(error=told, request_id=request.request_id)
            case "generator":
                return pb.ToolCallResponse(success=True, result=packed({"error": "Streaming tool called"}))
        result = request.kwargs["value"] if "value" in request.kwargs else packed(len(request.args))
        took = pb.ExecutionMetrics(duration_ms=12, custom_metrics={"cache_hit": 1.0})
        return pb.ToolCallResponse(success=True, result=result, request_id=request.request_id, metrics=took)

    async def StreamTool(self, request: Any, context: Any) -> AsyncIterator[pb.ToolStreamChunk]:
        try:
            async for chunk in self._chunks(request, context):
                chunk.stream_id = request.stream_id or "made"
                yield chunk
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.set()
            raise

    async def _chunks(self, request: Any, context: Any) -> AsyncIterator[pb.ToolStreamChunk]:
        data = lambda value: pb.ToolStreamChunk(data=packed(value))  # noqa: E731
        meta = lambda key, value: pb.ToolStreamChunk(metadata=pb.StreamMetadata(key=key, value=packed(value)))  # noqa: E731
        yield data(0)
        match request.tool_id:
            case "split":
                yield meta("bytes_total", 5)
                yield data(b"ab")
                yield data(b"cde")
                yield data(b"x")
            case "torn":
                yield meta("bytes_total", 5)
                yield data("a")
            case "two":
                yield meta("resultIndex", 1)
                yield data("a")
                yield meta("note", "b")
            case "fail":
                yield pb.ToolStreamChunk(error=error("InternalError", "boom", exception="ValueError"))
                return
            case "snakepit":
                text = '{"type": "ValueError", "message": "boom", "stacktrace": [], "traceback": "here"}'
                await context.abort(grpc.StatusCode.INTERNAL, text)
            case "snakepit-session":
                await context.abort(grpc.StatusCode.NOT_FOUND, "Session not found: s")
            case "truncated":
                return
            case "endless":
                while True:
                    yield data(1)
            case "silent":
                await asyncio.Event().wait()
        yield pb.ToolStreamChunk(complete=pb.CompleteSignal(total_chunks=4, metrics=pb.ExecutionMetrics(duration_ms=3)))

    async def BatchExecuteTools(self, request: Any, context: Any) -> pb.BatchToolCallResponse:
        if not request.items:
            told = error("ValidationError", "no items")
            await self.refuse(context, grpc.StatusCode.INVALID_ARGUMENT, told)
        results = [
            pb.ToolCallResult(index=item.index, error=error("ToolNotFound", "no such tool"))
            if item.tool_id == "nothing"
            else pb.ToolCallResult(index=item.index, success=True, result=packed(len(item.args)))
            for item in request.items
        ]
        total = pb.BatchMetrics(total_items=9, successful_items=1, failed_items=1, avg_duration_ms=0.5)
        return pb.BatchToolCallResponse(batch_id=request.batch_id, results=results, metrics=total)

    async def GetSessionVariable(self, request: Any, context: Any) -> pb.VariableResponse:
        if request.variable_name not in self.variables:
            return pb.VariableResponse()
        meta = pb.VariableMetadata(type="integer", created_at=NOW, updated_at=NOW, created_by="elixir", tags={"a": "b"})
        value = self.variables[request.variable_name]
        return pb.VariableResponse(exists=True, value=value, metadata=meta if request.include_metadata else None)

    async def SetSessionVariable(self, request: Any, context: Any) -> pb.StatusResponse:
        name = request.variable_name
        if name not in self.variables and not (request.create_if_missing and request.HasField("value")):
            told = error("ValidationError", "no such variable", code="variable_not_found")
            return pb.StatusResponse(error=told)
        update = pb.VariableUpdate(name=name, timestamp=NOW)
        if request.HasField("value"):
            update.operation = "update" if name in self.variables else "set"
            update.value.CopyFrom(request.value)
            self.variables[name] = request.value
        else:
            update.operation = "delete"
            del self.variables[name]
        self.changed.put_nowait(update)
        return pb.StatusResponse(success=True)

    async def ListSessionVariables(self, request: Any, context: Any) -> pb.ListVariablesResponse:
        rows = [
            pb.VariableInfo(name=name, type="integer", size_bytes=9, metadata=pb.VariableMetadata(created_by="elixir"))
            for name in sorted(self.variables)
            if name.startswith(request.prefix)
        ]
        return pb.ListVariablesResponse(variables=rows)

    async def WatchSessionVariables(self, request: Any, context: Any) -> AsyncIterator[pb.VariableUpdate]:
        try:
            while True:
                yield await self.changed.get()
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.set()
            raise

    async def CreateReActAgent(self, request: Any, context: Any) -> pb.CreateReActAgentResponse:
        return pb.CreateReActAgentResponse(agent_id="react_s_1", tool_count=2, capabilities=["tools"])

    async def ExecuteAgent(self, request: Any, context: Any) -> AsyncIterator[pb.AgentExecutionChunk]:
        thought = pb.ThoughtChunk(text="hm", step=1)
        action = pb.ActionChunk(tool_name="add", step=1)
        action.tool_input.update({"a": 1})
        seen = pb.ObservationChunk(tool_output=packed(3), step=1)
        if request.stream:
            yield pb.AgentExecutionChunk(agent_id=request.agent_id, thought=thought)
            yield pb.AgentExecutionChunk(agent_id=request.agent_id, action=action)
            yield pb.AgentExecutionChunk(agent_id=request.agent_id, observation=seen)
        if "wrong" in request.input:
            yield pb.AgentExecutionChunk(agent_id=request.agent_id, error=error("ValidationError", "no such field"))
            return
        if "mute" in request.input:
            return
        steps = [pb.IntermediateStep(thought=thought, action=action, observation=seen)]
        result = pb.ResultChunk(total_steps=1, steps=steps)
        result.final_answer.update({"answer": 3})
        yield pb.AgentExecutionChunk(agent_id=request.agent_id, result=result)

    async def HealthCheck(self, request: Any, context: Any) -> pb.HealthCheckResponse:
        if request.service == "nothing":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return pb.HealthCheckResponse(status="SERVING", dependencies={"llm": "NOT_SERVING"})

    async def GetMetrics(self, request: Any, context: Any) -> pb.MetricsResponse:
        histogram = pb.MetricHistogram(
            buckets=[pb.Bucket(upper_bound=1, count=1), pb.Bucket(upper_bound=float("inf"), count=2)], count=2, sum=5
        )
        return pb.MetricsResponse(
            metrics={
                "calls": pb.MetricValue(integer_value=2),
                "load": pb.MetricValue(double_value=0.5),
                "name": pb.MetricValue(string_value="x"),
                "took": pb.MetricValue(histogram=histogram),
            }
        )


def handlers(peer: Peer) -> dict[str, grpc.RpcMethodHandler]:
    """The methods of the service, which note what they are asked."""
    made: dict[str, Any] = {}
    for method in SERVICE.methods:
        answers = getattr(pb, method.output_type.name).SerializeToString
        requests = getattr(pb, method.input_type.name).FromString
        kind = grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
        made[method.name] = kind(_noting(peer, method), request_deserializer=requests, response_serializer=answers)
    return made


def _noting(peer: Peer, method: Any) -> Any:
    behaviour = getattr(peer, method.name)

    def note(request: Any, context: Any) -> None:
        peer.metadata = dict(context.invocation_metadata())
        peer.asked.append((method.name, request))

    async def unary(request: Any, context: Any) -> Any:
        note(request, context)
        return await behaviour(request, context)

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        note(request, context)
        async with contextlib.aclosing(behaviour(request, context)) as frames:
            async for frame in frames:
                yield frame

    return stream if method.server_streaming else unary


@contextlib.asynccontextmanager
async def serve(credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[Peer]:
    """Run a bridge on the current loop, on a free port of loopback."""
    quieten(asyncio.get_running_loop())
    peer = Peer()
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, handlers(peer)),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    peer.target = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield peer
    finally:
        await server.stop(None)


@contextlib.contextmanager
def serve_in_thread() -> Iterator[Peer]:
    """Run a bridge on a loop in a thread, for callers that have no loop or block theirs."""
    started = threading.Event()
    box: dict[str, Any] = {}

    async def main() -> None:
        box["stop"] = asyncio.Event()
        box["loop"] = asyncio.get_running_loop()
        async with serve() as box["peer"]:
            started.set()
            await box["stop"].wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="bridge")
    thread.start()
    assert started.wait(10), "the bridge did not start"
    try:
        yield box["peer"]
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(10)
        assert not thread.is_alive(), "the bridge did not stop"
