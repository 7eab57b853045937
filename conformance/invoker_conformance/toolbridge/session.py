"""`Session`: one session of the bridge, with the calls that scenarios make in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.toolbridge.rpcs import Listening, Rpcs
from invoker_conformance.toolbridge.rules import check_chunks, check_error, check_result
from invoker_conformance.toolbridge.values import pack, same, shown, value_in


class Session:
    """A session with an id.

    Args:
        host: Makes the rpcs.
        session_id: The id of the session.
    """

    def __init__(self, host: Rpcs, session_id: str) -> None:
        self.host = host
        self.id = session_id

    # --- the session itself

    async def init(
        self,
        *,
        metadata: Mapping[str, str] | None = None,
        callback: str = "",
        config: pb.SessionConfig | None = None,
        **fields: Any,
    ) -> pb.InitializeSessionResponse:
        """Call InitializeSession, and return the answer."""
        request = pb.InitializeSessionRequest(session_id=self.id, callback_address=callback, metadata=metadata)
        if config or fields:
            request.config.CopyFrom(config or pb.SessionConfig(**fields))
        answer = await self.host.ask("InitializeSession", request, pb.InitializeSessionResponse)
        if answer.success is answer.HasField("error"):
            raise self.host.failure(f"success={answer.success} and error={answer.error}", "either success or an error")
        if not answer.success:
            check_error(answer.error, self.host.sent)
        return answer

    async def begin(self, **options: Any) -> pb.InitializeSessionResponse:
        """Make the session, which must succeed."""
        answer = await self.init(**options)
        if not answer.success:
            raise self.host.failure(_told(answer.error), "success=true")
        return answer

    async def clean(self, *, force: bool = False) -> pb.StatusResponse:
        """Call CleanupSession, and return the answer."""
        request = pb.CleanupSessionRequest(session_id=self.id, force=force)
        return await self.host.ask("CleanupSession", request, pb.StatusResponse)

    async def info(self) -> pb.SessionInfo:
        """Call GetSessionInfo, and return the answer."""
        return await self.host.ask("GetSessionInfo", pb.GetSessionInfoRequest(session_id=self.id), pb.SessionInfo)

    async def is_gone(self, code: str = "") -> None:
        """Check that the session does not exist."""
        request = pb.GetSessionInfoRequest(session_id=self.id)
        await self.host.refuses("GetSessionInfo", request, pb.SessionInfo, "SessionExpired", code)

    async def tools(self) -> list[pb.ToolSpec]:
        """Call GetSessionTools, and return the tools."""
        request = pb.GetSessionToolsRequest(session_id=self.id)
        return list((await self.host.ask("GetSessionTools", request, pb.GetSessionToolsResponse)).tools)

    async def tool(self, name: str) -> pb.ToolSpec:
        """The specification of one tool."""
        for spec in await self.tools():
            if spec.name == name:
                return spec
        raise self.host.failure(f"no tool {name!r} in the list", "each tool that can be called")

    # --- calls

    def request(self, tool: str, args: Sequence[Any], kwargs: Mapping[str, Any], **fields: Any) -> pb.ToolCallRequest:
        """Make the request of a call."""
        return pb.ToolCallRequest(
            session_id=self.id,
            tool_id=tool,
            args=[pack(one) for one in args],
            kwargs={name: pack(one) for name, one in kwargs.items()},
            **fields,
        )

    async def execute(self, tool: str, *args: Any, **kwargs: Any) -> pb.ToolCallResponse:
        """Call a tool, check the rules for every answer, and return the answer."""
        return await self.send(self.request(tool, args, kwargs))

    async def send(self, request: pb.ToolCallRequest, *, deadline_s: float | None = None) -> pb.ToolCallResponse:
        """Send a request, check the rules for every answer, and return the answer."""
        answer = await self.host.ask("ExecuteTool", request, pb.ToolCallResponse, deadline_s=deadline_s)
        check_result(answer, self.host.sent)
        if answer.request_id != request.request_id:
            raise self.host.failure(f"the request_id {answer.request_id!r}", f"{request.request_id!r} (T-064)")
        return answer

    async def value(self, tool: str, *args: Any, **kwargs: Any) -> Any:
        """Call a tool, which must succeed, and return the result."""
        return self.result(await self.execute(tool, *args, **kwargs))

    def result(self, answer: pb.ToolCallResponse | pb.ToolCallResult) -> Any:
        """Return the result of an answer, which must be a success."""
        if not answer.success:
            raise self.host.failure(_told(answer.error), "a result")
        return value_in(answer.result)

    async def gives(self, expected: Any, tool: str, *args: Any, **kwargs: Any) -> None:
        """Check that a call returns this result, of this type."""
        answer = await self.execute(tool, *args, **kwargs)
        if not same(met := self.result(answer), expected):
            raise self.host.failure(f"{met!r} ({shown(answer.result)})", repr(expected))

    async def fails(self, kind: str, code: str, tool: str, *args: Any, field: str = "", **kwargs: Any) -> pb.ErrorInfo:
        """Check that a call fails with an error of this type, and with this code and field unless they are empty."""
        return self.failed(await self.execute(tool, *args, **kwargs), kind, code, field=field)

    def failed(
        self,
        answer: pb.ToolCallResponse | pb.ToolCallResult | pb.StatusResponse | pb.InitializeSessionResponse,
        kind: str,
        code: str = "",
        *,
        field: str = "",
    ) -> pb.ErrorInfo:
        """Check that an answer is an error of this type, with this code and field unless they are empty."""
        if answer.success:
            raise self.host.failure("success=true", _wanted(kind, code, field))
        return self.is_error(answer.error, kind, code, field=field)

    def is_error(self, error: pb.ErrorInfo, kind: str, code: str = "", *, field: str = "") -> pb.ErrorInfo:
        """Check that an error has this type, and this code and field unless they are empty."""
        check_error(error, self.host.sent)
        is_right = error.type == kind and (not code or error.details.get("code") == code)
        if not is_right or (field and error.details.get("field") != field):
            raise self.host.failure(_told(error), _wanted(kind, code, field))
        return error

    # --- streams and batches

    def stream(
        self, tool: str, *args: Any, stream_id: str = "", config: pb.StreamConfig | None = None, **kwargs: Any
    ) -> AbstractAsyncContextManager[Listening[pb.ToolStreamChunk]]:
        """Start a stream of a tool."""
        request = pb.ToolStreamRequest(
            session_id=self.id,
            tool_id=tool,
            args=[pack(one) for one in args],
            kwargs={name: pack(one) for name, one in kwargs.items()},
            stream_id=stream_id,
            config=config,
        )
        return self.host.listen("StreamTool", request, pb.ToolStreamChunk)

    async def chunks(
        self, tool: str, *args: Any, stream_id: str = "", config: pb.StreamConfig | None = None, **kwargs: Any
    ) -> list[pb.ToolStreamChunk]:
        """Return all chunks of a stream, after the checks for every stream."""
        async with self.stream(tool, *args, stream_id=stream_id, config=config, **kwargs) as stream:
            got = await stream.all()
        check_chunks(got, stream_id, self.host.sent)
        return got

    async def values(self, tool: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the data of a stream, which must end without an error."""
        got = await self.chunks(tool, *args, **kwargs)
        if got[-1].WhichOneof("content") == "error":
            raise self.host.failure(_told(got[-1].error), "complete")
        return [value_in(chunk.data) for chunk in got if chunk.WhichOneof("content") == "data"]

    async def batch(
        self, *calls: tuple[Any, ...], config: pb.BatchConfig | None = None, **fields: Any
    ) -> pb.BatchToolCallResponse:
        """Send a batch, and return the answer; each call is a tool with its positional arguments."""
        items = [
            pb.ToolCallItem(index=index, tool_id=tool, args=[pack(one) for one in args])
            for index, (tool, *args) in enumerate(calls)
        ]
        request = pb.BatchToolCallRequest(session_id=self.id, items=items, config=config, **fields)
        answer = await self.host.ask("BatchExecuteTools", request, pb.BatchToolCallResponse)
        for result in answer.results:
            check_result(result, self.host.sent)
        return answer

    # --- variables

    async def set(self, name: str, value: Any, *, create: bool = True, **fields: Any) -> pb.StatusResponse:
        """Call SetSessionVariable, and return the answer."""
        request = pb.SetVariableRequest(
            session_id=self.id, variable_name=name, value=pack(value), create_if_missing=create, **fields
        )
        return await self.host.ask("SetSessionVariable", request, pb.StatusResponse)

    async def put(self, name: str, value: Any, **fields: Any) -> None:
        """Set a variable, which must succeed."""
        answer = await self.set(name, value, **fields)
        if not answer.success:
            raise self.host.failure(_told(answer.error), "success=true")

    async def drop(self, name: str) -> pb.StatusResponse:
        """Call SetSessionVariable without a value, and return the answer."""
        request = pb.SetVariableRequest(session_id=self.id, variable_name=name)
        return await self.host.ask("SetSessionVariable", request, pb.StatusResponse)

    async def get(self, name: str, *, metadata: bool = False) -> pb.VariableResponse:
        """Call GetSessionVariable, and return the answer."""
        request = pb.GetVariableRequest(session_id=self.id, variable_name=name, include_metadata=metadata)
        return await self.host.ask("GetSessionVariable", request, pb.VariableResponse)

    async def names(self, **fields: Any) -> list[str]:
        """Call ListSessionVariables, and return the names."""
        request = pb.ListVariablesRequest(session_id=self.id, **fields)
        answer = await self.host.ask("ListSessionVariables", request, pb.ListVariablesResponse)
        return [row.name for row in answer.variables]

    def watch(self, *names: str, initial: bool = True) -> AbstractAsyncContextManager[Listening[pb.VariableUpdate]]:
        """Start a watch; without `initial`, it may start somewhat later."""
        request = pb.WatchVariablesRequest(session_id=self.id, variable_names=names, include_initial=initial)
        return self.host.listen("WatchSessionVariables", request, pb.VariableUpdate)


def _told(error: pb.ErrorInfo) -> str:
    return f"{error.type} {error.message!r} {dict(error.details)}"


def _wanted(kind: str, code: str, field: str) -> str:
    return f"{kind}{f' code={code}' if code else ''}{f' field={field}' if field else ''}"
