"""`SyncToolBridge`: the client for code without an event loop; it runs one in a thread of its own.

Each class does the same as the class without ``Sync`` in its name, but its methods block instead of being awaited.
"""

from __future__ import annotations

from typing import Any, Self, TypeVar

from invoker.connect.portal import Portal
from invoker.connect.sync import SyncClient, SyncIterator, SyncPart, blocking, giving, opening, soon
from invoker.protocols.toolbridge.client.agents import Agent, Step
from invoker.protocols.toolbridge.client.client import ToolBridge
from invoker.protocols.toolbridge.client.session import ToolSession
from invoker.protocols.toolbridge.client.streams import Stream
from invoker.protocols.toolbridge.client.variables import Change, Variables

T = TypeVar("T")


class SyncStream(SyncIterator[T]):
    """Iterates over the values of a stream; see `Stream`. One thread may iterate while another cancels."""

    def __init__(self, portal: Portal, stream: Stream[Any, T]) -> None:
        super().__init__(portal, stream)
        self.source = stream
        """The async stream, for its attributes; see `ToolStream`."""

    cancel = close = soon(Stream.cancel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class SyncAgent(SyncPart[Agent]):
    """An agent of a session; see `Agent`."""

    def __init__(self, portal: Portal, agent: Agent) -> None:
        super().__init__(portal, agent)
        self.id = agent.id
        self.tool_count = agent.tool_count
        self.capabilities = agent.capabilities

    run = giving(Agent.run, SyncStream[Step])
    ask = blocking(Agent.ask)


class SyncVariables(SyncPart[Variables]):
    """The variables of one session; see `Variables`."""

    get = blocking(Variables.get)
    describe = blocking(Variables.describe)
    set = blocking(Variables.set)
    delete = blocking(Variables.delete)
    list = blocking(Variables.list)
    watch = giving(Variables.watch, SyncStream[Change])


class SyncToolSession(SyncPart[ToolSession]):
    """A host session for code without an event loop; see `ToolSession`."""

    def __init__(self, portal: Portal, session: ToolSession) -> None:
        super().__init__(portal, session)
        self.id = session.id
        self.variables = SyncVariables(portal, session.variables)

    def __enter__(self) -> Self:
        self._portal.run(self._source.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._portal.run(self._source.__aexit__(kind))

    @property
    def tool_count(self) -> int:
        """The number of tools that the session can call; known once it is open."""
        return self._source.tool_count

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that the bridge reports; known once the session is open."""
        return self._source.capabilities

    open = blocking(ToolSession.open)
    close = blocking(ToolSession.close)
    info = blocking(ToolSession.info)
    tools = blocking(ToolSession.tools)
    call = blocking(ToolSession.call)
    execute = blocking(ToolSession.execute)
    stream = giving(ToolSession.stream, SyncStream[Any])
    open_stream = giving(ToolSession.open_stream, SyncStream[Any])
    batch = blocking(ToolSession.batch)
    agent = blocking(ToolSession.agent, SyncAgent)


class SyncToolBridge(SyncClient[ToolBridge]):
    """A connection to one bridge; the arguments are those of `ToolBridge`. Several threads may use it at once."""

    @opening(ToolBridge)
    def __init__(self, source: ToolBridge) -> None:
        super().__init__(source)

    session = giving(ToolBridge.session, SyncToolSession)
    health = blocking(ToolBridge.health)
    metrics = blocking(ToolBridge.metrics)
