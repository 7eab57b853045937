"""`SyncToolBridge`: the client for code without an event loop; it runs one in a thread of its own.

What each class does, its namesake without ``Sync`` does; only the waiting is different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Self, TypeVar

from invoker.connect.portal import Portal
from invoker.connect.tls import Tls
from invoker.message import EMPTY
from invoker.protocols.toolbridge.client.agents import Agent, Answer, Step
from invoker.protocols.toolbridge.client.answers import Batch, Health, Histogram, SessionInfo, ToolResult
from invoker.protocols.toolbridge.client.client import MAX_OUTPUT_BYTES, RETRY_WAITS_S, ToolBridge
from invoker.protocols.toolbridge.client.session import ToolCall, ToolSession
from invoker.protocols.toolbridge.client.specs import Tool
from invoker.protocols.toolbridge.client.streams import Stream
from invoker.protocols.toolbridge.client.variables import MISSING, Change, Variable, VariableRow, Variables

__all__ = ["SyncAgent", "SyncStream", "SyncToolBridge", "SyncToolSession", "SyncVariables"]

T = TypeVar("T")


class SyncToolBridge:
    """A connection to one bridge; the arguments are those of `ToolBridge`. Several threads may use it at once."""

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | None = None,
        metadata: Mapping[str, str | bytes] = EMPTY,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        retry_waits_s: Sequence[float] = RETRY_WAITS_S,
    ) -> None:
        self._bridge = ToolBridge(
            target, tls=tls, metadata=metadata, max_output_bytes=max_output_bytes, retry_waits_s=retry_waits_s
        )
        self._made: Portal | None = None

    def __enter__(self) -> Self:
        if self._made is None:
            self._made = Portal()
            try:
                self._made.run(self._bridge.__aenter__())
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def session(
        self,
        session_id: str = "",
        *,
        callback_address: str = "",
        metadata: Mapping[str, str] = EMPTY,
        max_concurrent_tools: int = 0,
        default_timeout_s: float = 0.0,
        caching: bool = False,
        telemetry: bool = False,
        keep: bool = False,
    ) -> SyncToolSession:
        """As `ToolBridge.session`; ``with`` makes it and cleans it up."""
        portal = self._portal
        session = self._bridge.session(
            session_id,
            callback_address=callback_address,
            metadata=metadata,
            max_concurrent_tools=max_concurrent_tools,
            default_timeout_s=default_timeout_s,
            caching=caching,
            telemetry=telemetry,
            keep=keep,
        )
        return SyncToolSession(portal, session)

    def health(self, service: str = "") -> Health:
        """As `ToolBridge.health`."""
        return self._portal.run(self._bridge.health(service))

    def metrics(
        self, *names: str, start: datetime | None = None, end: datetime | None = None
    ) -> dict[str, int | float | str | Histogram]:
        """As `ToolBridge.metrics`."""
        return self._portal.run(self._bridge.metrics(*names, start=start, end=end))

    def close(self) -> None:
        """Cancel what is under way, close the connection and end the thread. Idempotent."""
        portal, self._made = self._made, None
        if portal is not None:
            try:
                portal.run(self._bridge.close())
            finally:
                portal.close()

    @property
    def _portal(self) -> Portal:
        if self._made is None:
            raise RuntimeError("the client is not open; use it as `with SyncToolBridge(...) as bridge:`")
        return self._made


class SyncToolSession:
    """A host session for code without an event loop; see `ToolSession`."""

    def __init__(self, portal: Portal, session: ToolSession) -> None:
        self._portal = portal
        self._session = session
        self.id = session.id
        self.variables = SyncVariables(portal, session.variables)

    def __enter__(self) -> Self:
        self._portal.run(self._session.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._portal.run(self._session.__aexit__(kind))

    @property
    def tool_count(self) -> int:
        """How many tools it can call; known once it is open."""
        return self._session.tool_count

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What the bridge says that it can; known once it is open."""
        return self._session.capabilities

    def open(self) -> None:
        """As `ToolSession.open`."""
        self._portal.run(self._session.open())

    def close(self, *, force: bool = False) -> str:
        """As `ToolSession.close`."""
        return self._portal.run(self._session.close(force=force))

    def info(self) -> SessionInfo:
        """As `ToolSession.info`."""
        return self._portal.run(self._session.info())

    def tools(self) -> list[Tool]:
        """As `ToolSession.tools`."""
        return self._portal.run(self._session.tools())

    def call(self, tool: str, /, *args: Any, **kwargs: Any) -> Any:
        """As `ToolSession.call`."""
        return self._portal.run(self._session.call(tool, *args, **kwargs))

    def execute(
        self,
        tool: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] = EMPTY,
        *,
        request_id: str = "",
        timeout_s: float = 0.0,
        context: Mapping[str, str] = EMPTY,
    ) -> ToolResult:
        """As `ToolSession.execute`."""
        work = self._session.execute(tool, args, kwargs, request_id=request_id, timeout_s=timeout_s, context=context)
        return self._portal.run(work)

    def stream(self, tool: str, /, *args: Any, **kwargs: Any) -> SyncStream[Any]:
        """As `ToolSession.stream`."""
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
    ) -> SyncStream[Any]:
        """As `ToolSession.open_stream`."""
        stream = self._session.open_stream(
            tool,
            args,
            kwargs,
            stream_id=stream_id,
            chunk_size=chunk_size,
            buffer_size=buffer_size,
            backpressure=backpressure,
            deadline_s=deadline_s,
        )
        return SyncStream(self._portal, stream)

    def batch(
        self,
        calls: Sequence[ToolCall],
        *,
        parallel: bool = False,
        stop_on_error: bool = False,
        max_parallel: int = 0,
        batch_id: str = "",
    ) -> Batch:
        """As `ToolSession.batch`."""
        work = self._session.batch(
            calls, parallel=parallel, stop_on_error=stop_on_error, max_parallel=max_parallel, batch_id=batch_id
        )
        return self._portal.run(work)

    def agent(
        self,
        signature: str,
        *,
        tools: Sequence[str] = (),
        max_iters: int = 0,
        llm: Mapping[str, Any] = EMPTY,
        verbose: bool = False,
        tells_steps: bool = False,
    ) -> SyncAgent:
        """As `ToolSession.agent`."""
        work = self._session.agent(
            signature, tools=tools, max_iters=max_iters, llm=llm, verbose=verbose, tells_steps=tells_steps
        )
        return SyncAgent(self._portal, self._portal.run(work))


class SyncVariables:
    """The variables of one session; see `Variables`."""

    def __init__(self, portal: Portal, variables: Variables) -> None:
        self._portal = portal
        self._variables = variables

    def get(self, name: str, default: Any = MISSING) -> Any:
        """As `Variables.get`."""
        return self._portal.run(self._variables.get(name, default))

    def describe(self, name: str) -> Variable | None:
        """As `Variables.describe`."""
        return self._portal.run(self._variables.describe(name))

    def set(
        self,
        name: str,
        value: Any,
        *,
        tags: Mapping[str, str] | None = None,
        created_by: str = "",
        create: bool = True,
    ) -> None:
        """As `Variables.set`."""
        self._portal.run(self._variables.set(name, value, tags=tags, created_by=created_by, create=create))

    def delete(self, name: str) -> None:
        """As `Variables.delete`."""
        self._portal.run(self._variables.delete(name))

    def list(self, prefix: str = "", *, tags: Sequence[str] = (), limit: int = 0) -> list[VariableRow]:
        """As `Variables.list`."""
        return self._portal.run(self._variables.list(prefix, tags=tags, limit=limit))

    def watch(self, *names: str, initial: bool = True) -> SyncStream[Change]:
        """As `Variables.watch`."""
        return SyncStream(self._portal, self._variables.watch(*names, initial=initial))


class SyncAgent:
    """An agent of a session; see `Agent`."""

    def __init__(self, portal: Portal, agent: Agent) -> None:
        self._portal = portal
        self._agent = agent
        self.id = agent.id
        self.tool_count = agent.tool_count
        self.capabilities = agent.capabilities

    def run(
        self, values: Mapping[str, Any], *, context: Mapping[str, Any] = EMPTY, stream: bool = True
    ) -> SyncStream[Step]:
        """As `Agent.run`."""
        return SyncStream(self._portal, self._agent.run(values, context=context, stream=stream))

    def ask(self, values: Mapping[str, Any], *, context: Mapping[str, Any] = EMPTY) -> Answer:
        """As `Agent.ask`."""
        return self._portal.run(self._agent.ask(values, context=context))


class SyncStream(Iterator[T], Generic[T]):
    """Iterate it for the values; see `Stream`. One thread may iterate while another cancels."""

    def __init__(self, portal: Portal, stream: Stream[Any, T]) -> None:
        self._portal = portal
        self.source = stream
        """The stream itself, for what it knows beside the values; see `ToolStream`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __next__(self) -> T:
        got = self._portal.run(self._next())
        if got is None:
            raise StopIteration
        return got[0]

    def cancel(self) -> None:
        """Cancel what still runs; who iterates gets `ToolCommunicationError` with CANCELLED. Idempotent."""
        self._portal.soon(self.source.cancel)

    def close(self) -> None:
        """As `cancel`."""
        self.cancel()

    async def _next(self) -> tuple[T] | None:
        async for value in self.source:
            return (value,)
        return None
