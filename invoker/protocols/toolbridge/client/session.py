"""`ToolSession`: a session of the bridge, with its tools, variables and agents."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.connect.failure import CallFailed
from invoker.message import EMPTY
from invoker.protocols.toolbridge.client.agents import Agent
from invoker.protocols.toolbridge.client.answers import Batch, SessionInfo, ToolResult, batch_in, info_in, result_in
from invoker.protocols.toolbridge.client.failure import failed
from invoker.protocols.toolbridge.client.link import Link
from invoker.protocols.toolbridge.client.specs import Tool, tool_in
from invoker.protocols.toolbridge.client.streams import ToolStream
from invoker.protocols.toolbridge.client.values import packed_all, packed_each
from invoker.protocols.toolbridge.client.variables import Variables

LATE_S = 5.0
"""The rpc of a call is cancelled this many seconds after the call's time limit, if the bridge has not ended the
call."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a batch; ``ToolCall.of("add", 1, b=2)`` is written like a call."""

    tool: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tool: str, /, *args: Any, **kwargs: Any) -> Self:
        """The call ``tool(*args, **kwargs)``."""
        return cls(tool, args, kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The options of a session; for an option that is not given, the bridge has a default.

    Attributes:
        callback_address: The address at which this program serves the same service, so that the bridge can call its
            tools.
        metadata: Data that the bridge keeps with the session.
        max_concurrent_tools: How many tools may run in the session at once.
        default_timeout_s: The time limit in seconds of calls without their own.
        caching: Whether a repeated ``request_id`` is answered from memory.
        telemetry: Whether the bridge counts the calls of this session separately.
    """

    callback_address: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    max_concurrent_tools: int = 0
    default_timeout_s: float = 0.0
    caching: bool = False
    telemetry: bool = False

    def request(self, session_id: str) -> pb.InitializeSessionRequest:
        """The request that makes the session."""
        config = pb.SessionConfig(
            max_concurrent_tools=self.max_concurrent_tools,
            default_timeout_ms=_milliseconds(self.default_timeout_s),
            enable_caching=self.caching,
            enable_telemetry=self.telemetry,
        )
        return pb.InitializeSessionRequest(
            session_id=session_id, callback_address=self.callback_address, metadata=self.metadata, config=config
        )


class ToolSession:
    """A session; ``async with`` makes it, and cleans it up at the end.

    Attributes:
        id: The id of the session.
        variables: The variables of the session.
        tool_count: How many tools the session can call; known once the session is open.
        capabilities: The capabilities that the bridge reports; known once the session is open.
    """

    def __init__(self, link: Link, session_id: str, options: SessionOptions, *, is_kept: bool) -> None:
        self._link = link
        self._options = options
        self._is_kept = is_kept
        self.id = session_id or uuid.uuid4().hex
        self.variables = Variables(link, self.id)
        self.tool_count = 0
        self.capabilities: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._is_kept:
            return
        try:
            await self.close(force=True)
        except CallFailed:
            if kind is None:  # the exception of the block is more important
                raise

    async def open(self) -> None:
        """Make the session; one that exists with the same options is left unchanged.

        Raises:
            ToolExecutionError: The bridge refused; ``code`` is ``session_exists`` if the session exists with other
                options.
        """
        request = self._options.request(self.id)
        answer = await self._link.ask("InitializeSession", request, pb.InitializeSessionResponse)
        if not answer.success:
            raise failed("", answer.error)
        self.tool_count = answer.tool_count
        self.capabilities = tuple(answer.capabilities)

    async def close(self, *, force: bool = False) -> str:
        """Clean up the session with all its variables and agents; it is no error if the session no longer exists.

        Args:
            force: Whether tools that run in the session are cancelled; otherwise they are an error.

        Returns:
            The message of the bridge.

        Raises:
            ToolExecutionError: Tools are running in the session.
        """
        request = pb.CleanupSessionRequest(session_id=self.id, force=force)
        answer = await self._link.ask("CleanupSession", request, pb.StatusResponse)
        if not answer.success:
            raise failed("", answer.error)
        return answer.message

    async def info(self) -> SessionInfo:
        """Ask the bridge for its data about the session."""
        request = pb.GetSessionInfoRequest(session_id=self.id)
        return info_in(await self._link.ask("GetSessionInfo", request, pb.SessionInfo))

    async def tools(self) -> list[Tool]:
        """Ask for the tools that can be called."""
        request = pb.GetSessionToolsRequest(session_id=self.id)
        answer = await self._link.ask("GetSessionTools", request, pb.GetSessionToolsResponse)
        return [tool_in(one) for one in answer.tools]

    async def call(self, tool: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a tool with these arguments and wait for its result.

        Raises:
            ToolExecutionError: The bridge answered with an error.
            ToolCommunicationError: The rpc failed.
            EncodeError: An argument cannot be encoded; nothing was sent.
        """
        return (await self.execute(tool, args, kwargs)).value

    async def execute(
        self,
        tool: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] = EMPTY,
        *,
        request_id: str = "",
        timeout_s: float = 0.0,
        context: Mapping[str, str] = EMPTY,
    ) -> ToolResult:
        """Call a tool as `call` does, with all options, and return the complete answer.

        Args:
            tool: The id or the name of the tool.
            args: The positional arguments.
            kwargs: The keyword arguments by name.
            request_id: Identifies repetitions of the call. Only a call with a request id is retried if the rpc fails
                with UNAVAILABLE or DEADLINE_EXCEEDED, by default up to three times; a session with caching runs it only
                once.
            timeout_s: The time limit of the tool in seconds; 0: the limit of the session.
            context: Values that the tool can read in addition to its arguments.
        """
        request = pb.ToolCallRequest(
            session_id=self.id,
            tool_id=tool,
            args=packed_all(args),
            kwargs=packed_each(kwargs),
            request_id=request_id,
            timeout_ms=_milliseconds(timeout_s),
            context=context,
        )
        ask = self._link.insist if request_id else self._link.ask
        deadline_s = timeout_s + LATE_S if timeout_s > 0 else None
        answer = await ask("ExecuteTool", request, pb.ToolCallResponse, tool=tool, deadline_s=deadline_s)
        return result_in(tool, answer)

    def stream(self, tool: str, /, *args: Any, **kwargs: Any) -> ToolStream:
        """Call a tool with these arguments, and iterate over its results as they are made."""
        return self.open_stream(tool, args, kwargs)

    def open_stream(
        self,
        tool: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] = EMPTY,
        *,
        stream_id: str = "",
        chunk_size: int = 0,
        buffer_size: int = 0,
        backpressure: bool = True,
        deadline_s: float | None = None,
    ) -> ToolStream:
        """Call a tool as `stream` does, with all options of a stream.

        Args:
            tool: The id or the name of the tool.
            args: The positional arguments.
            kwargs: The keyword arguments by name.
            stream_id: An id that is repeated in each chunk; empty: the bridge makes one.
            chunk_size: Values of bytes that are larger than this are sent in several chunks; 0: 64 KiB.
            buffer_size: How many values the tool may be ahead of this client; 0: 16.
            backpressure: Whether the tool waits for this client; if not, it runs ahead until the bridge holds too many
                bytes.
            deadline_s: The stream ends with DEADLINE_EXCEEDED after this many seconds; None: never.
        """
        request = pb.ToolStreamRequest(
            session_id=self.id,
            tool_id=tool,
            args=packed_all(args),
            kwargs=packed_each(kwargs),
            stream_id=stream_id,
            config=pb.StreamConfig(chunk_size=chunk_size, buffer_size=buffer_size, backpressure_enabled=backpressure),
        )
        link = self._link
        return ToolStream(
            lambda: link.listen("StreamTool", request, pb.ToolStreamChunk, deadline_s=deadline_s), tool, link.target
        )

    async def batch(
        self,
        calls: Sequence[ToolCall],
        *,
        parallel: bool = False,
        stop_on_error: bool = False,
        max_parallel: int = 0,
        batch_id: str = "",
    ) -> Batch:
        """Make many calls in one rpc; a call that fails becomes an item with an error.

        Args:
            calls: The calls; their answers have the same order.
            parallel: Whether several calls run at once; if not, they run one after the other.
            stop_on_error: Whether no further call begins after one has failed.
            max_parallel: How many calls run at once; 0: the bridge's default.
            batch_id: An id that is repeated in the answer.
        """
        items = [
            pb.ToolCallItem(index=index, tool_id=one.tool, args=packed_all(one.args), kwargs=packed_each(one.kwargs))
            for index, one in enumerate(calls)
        ]
        config = pb.BatchConfig(parallel=parallel, stop_on_error=stop_on_error, max_parallel=max_parallel)
        request = pb.BatchToolCallRequest(session_id=self.id, batch_id=batch_id, items=items, config=config)
        answer = await self._link.ask("BatchExecuteTools", request, pb.BatchToolCallResponse)
        return batch_in({index: one.tool for index, one in enumerate(calls)}, answer)

    async def agent(
        self,
        signature: str,
        *,
        tools: Sequence[str] = (),
        max_iters: int = 0,
        llm: Mapping[str, Any] = EMPTY,
        verbose: bool = False,
        tells_steps: bool = False,
    ) -> Agent:
        """Make an agent.

        Args:
            signature: The inputs and outputs, such as ``question, context -> answer: int``.
            tools: The names of the tools that the agent may use; none: all.
            max_iters: How many steps the agent may take before it has to answer; 0: 5.
            llm: The model: ``provider``, or ``model`` and ``base_url``, as far as the bridge allows.
            verbose: Whether the bridge logs more.
            tells_steps: Whether the answer lists the steps.
        """
        config = pb.AgentConfig(verbose=verbose, return_intermediate_steps=tells_steps, llm_config=packed_each(llm))
        request = pb.CreateReActAgentRequest(
            session_id=self.id, signature=signature, tool_names=tools, max_iters=max_iters, config=config
        )
        return Agent(self._link, await self._link.ask("CreateReActAgent", request, pb.CreateReActAgentResponse))


def _milliseconds(seconds: float) -> int:
    """Convert a time to milliseconds for the wire, at least 1, since 0 means that there is no limit."""
    return max(1, round(seconds * 1000)) if seconds > 0 else round(seconds * 1000)
