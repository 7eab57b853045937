"""`ToolSession`: a session of the bridge, in which tools are called, and which has variables and agents."""

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
"""How long after the time of a call the rpc is given up, if the bridge has not."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a batch; `ToolCall.of` has the form of a call."""

    tool: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tool: str, /, *args: Any, **kwargs: Any) -> Self:
        """The call ``tool(*args, **kwargs)``."""
        return cls(tool, args, kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The options of a session; an option that is not given has the bridge's default.

    Attributes:
        callback_address: The address at which this program serves the same service, so that the bridge can call its
            tools.
        metadata: Kept with the session.
        max_concurrent_tools: How many tools may run in it at once.
        default_timeout_s: The time limit of a call without one of its own.
        caching: Whether a repeated ``request_id`` is answered from memory.
        telemetry: Whether the calls of this session are counted by its name.
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
        variables: Its variables.
        tool_count: How many tools it can call; known once it is open.
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
            if kind is None:  # the body's exception says more
                raise

    async def open(self) -> None:
        """Make the session; a session that exists and was made in the same way is unchanged.

        Raises:
            ToolExecutionError: The bridge refused; ``code`` is ``session_exists`` if it was made in another way.
        """
        request = self._options.request(self.id)
        answer = await self._link.ask("InitializeSession", request, pb.InitializeSessionResponse)
        if not answer.success:
            raise failed("", answer.error)
        self.tool_count = answer.tool_count
        self.capabilities = tuple(answer.capabilities)

    async def close(self, *, force: bool = False) -> str:
        """Clean up the session with all its variables and agents; a session that is already gone is no error.

        Args:
            force: Whether to do so even while tools run in it; these are cancelled.

        Returns:
            The bridge's message about it.

        Raises:
            ToolExecutionError: Tools run in it.
        """
        request = pb.CleanupSessionRequest(session_id=self.id, force=force)
        answer = await self._link.ask("CleanupSession", request, pb.StatusResponse)
        if not answer.success:
            raise failed("", answer.error)
        return answer.message

    async def info(self) -> SessionInfo:
        """Get the bridge's data of the session."""
        request = pb.GetSessionInfoRequest(session_id=self.id)
        return info_in(await self._link.ask("GetSessionInfo", request, pb.SessionInfo))

    async def tools(self) -> list[Tool]:
        """The tools that can be called."""
        request = pb.GetSessionToolsRequest(session_id=self.id)
        answer = await self._link.ask("GetSessionTools", request, pb.GetSessionToolsResponse)
        return [tool_in(one) for one in answer.tools]

    async def call(self, tool: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a tool with these arguments and wait for its result.

        Raises:
            ToolExecutionError: The bridge answered with an error.
            ToolCommunicationError: The rpc failed.
            EncodeError: An argument has no form on the wire; nothing was sent.
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
        """As `call`, with all options of a call, and the whole answer.

        Args:
            tool: Its id or its name.
            args: By position.
            kwargs: The keyword arguments by name.
            request_id: Identifies repeated calls. Only a call with one is tried again, up to three times, when the rpc
                fails with UNAVAILABLE or DEADLINE_EXCEEDED; a session with caching runs it only once.
            timeout_s: The time limit of the tool; 0: the limit of the session.
            context: Values for the tool, beside its arguments.
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
        """Call a tool with these arguments, for its results as they are made."""
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
        """As `stream`, with all options of a stream.

        Args:
            tool: Its id or its name.
            args: By position.
            kwargs: The keyword arguments by name.
            stream_id: Repeated in each chunk; empty: the bridge makes one.
            chunk_size: Larger bytes are sent in several chunks; 0: 64 KiB.
            buffer_size: How many values the tool may be ahead of us; 0: 16.
            backpressure: Whether the tool waits for this client; if not, it runs ahead until the bridge holds too much.
            deadline_s: Seconds after which the client gives up; None: never.
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
        """Make many calls by one rpc; a call that fails is an item with an error.

        Args:
            calls: The calls in the order of the answers.
            parallel: Whether several run at once; if not, one after the other.
            stop_on_error: Whether no further call begins after one has failed.
            max_parallel: How many calls run at once; 0: the bridge's default.
            batch_id: Repeated in the answer.
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
            tools: Names of the tools that it may use; none: all.
            max_iters: The most steps before it has to answer; 0: 5.
            llm: The model: ``provider``, or ``model`` and ``base_url``, as far as the bridge allows.
            verbose: Whether the bridge logs more.
            tells_steps: Whether the answer has the steps.
        """
        config = pb.AgentConfig(verbose=verbose, return_intermediate_steps=tells_steps, llm_config=packed_each(llm))
        request = pb.CreateReActAgentRequest(
            session_id=self.id, signature=signature, tool_names=tools, max_iters=max_iters, config=config
        )
        return Agent(self._link, await self._link.ask("CreateReActAgent", request, pb.CreateReActAgentResponse))


def _milliseconds(seconds: float) -> int:
    """A time in milliseconds for the wire, at least 1, since 0 means that none is given."""
    return max(1, round(seconds * 1000)) if seconds > 0 else round(seconds * 1000)
