"""The rpcs of the tool bridge: one row for each, with its session and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.execution.loop.ahead import AheadReactor
from invoker.execution.loop.holding import ArrivingReactor, HoldingReactor
from invoker.execution.loop.reactor import Reactor
from invoker.message import Headers
from invoker.protocols.toolbridge.agents import CreateReActAgent, ExecuteAgent
from invoker.protocols.toolbridge.batch import BatchExecuteTools
from invoker.protocols.toolbridge.execute import ExecuteTool
from invoker.protocols.toolbridge.health import HealthCheck
from invoker.protocols.toolbridge.metrics import GetMetrics
from invoker.protocols.toolbridge.service.bridge import Bridge
from invoker.protocols.toolbridge.sessions import CleanupSession, GetSessionInfo, GetSessionTools, InitializeSession
from invoker.protocols.toolbridge.stream import StreamTool
from invoker.protocols.toolbridge.unary import UnarySession, Unbuilt
from invoker.protocols.toolbridge.variables import GetSessionVariable, ListSessionVariables, SetSessionVariable
from invoker.protocols.toolbridge.watch import WatchSessionVariables
from invoker.transports.grpc.methods import CallMethod, LoopMethod, Method

SERVICE = pb.DESCRIPTOR.services_by_name["SnakepitBridge"].full_name

Make: TypeAlias = Callable[[Bridge, Headers], Any]
"""Makes the session of one call, from its metadata."""


_CAPABILITIES = {
    "StreamTool": "streaming",
    "BatchExecuteTools": "batch",
    "SetSessionVariable": "variables",
    "WatchSessionVariables": "watch",
    "CreateReActAgent": "agents",
    "GetMetrics": "metrics",
}
"""The capabilities that InitializeSession reports for rpcs that are served (T-001)."""


class Row(NamedTuple):
    """An rpc of the bridge, and how it is served.

    Attributes:
        name: The name of the method.
        make: Makes the session of one call.
        is_call: Whether a call is one invocation, which may run in a thread of its own; all other rpcs run on the loop.
        is_built: Whether the rpc is served.
        reactor: Runs the session on the loop.
    """

    name: str
    make: Make
    is_call: bool = False
    is_built: bool = True
    reactor: Callable[..., Reactor] = Reactor


def with_host_sessions(kind: type[UnarySession[Any]]) -> Make:
    """Make sessions that need only `HostSessions`."""
    return lambda bridge, metadata: kind(bridge.host_sessions, metadata)


def unbuilt(name: str) -> Row:
    """The row of an rpc that is not served."""
    return Row(name, lambda _bridge, _metadata: Unbuilt(name), is_built=False)


def _health(bridge: Bridge, metadata: Headers) -> HealthCheck:
    watch, critical = bridge.watch, bridge.settings.critical
    return HealthCheck(
        bridge.host_sessions, metadata, serves=watch.serves, dependencies=watch.health, critical=critical
    )


def _metrics(bridge: Bridge, metadata: Headers) -> GetMetrics:
    watch = bridge.watch
    tells = bridge.host_sessions.tools.tells
    return GetMetrics(
        bridge.host_sessions, metadata, tally=watch.tally, total=watch.total, gauges=watch.gauges, tells=tells
    )


ROWS: tuple[Row, ...] = (
    Row("InitializeSession", with_host_sessions(InitializeSession)),
    Row("CleanupSession", with_host_sessions(CleanupSession)),
    Row("GetSessionInfo", with_host_sessions(GetSessionInfo)),
    Row("GetSessionTools", with_host_sessions(GetSessionTools)),
    Row(
        "ExecuteTool",
        lambda bridge, metadata: ExecuteTool(bridge.host_sessions, metadata),
        is_call=True,
        reactor=ArrivingReactor,
    ),
    Row("StreamTool", lambda bridge, metadata: StreamTool(bridge.host_sessions, metadata), reactor=AheadReactor),
    Row("BatchExecuteTools", with_host_sessions(BatchExecuteTools), reactor=HoldingReactor),
    Row("GetSessionVariable", with_host_sessions(GetSessionVariable)),
    Row("SetSessionVariable", with_host_sessions(SetSessionVariable)),
    Row("ListSessionVariables", with_host_sessions(ListSessionVariables)),
    Row("WatchSessionVariables", with_host_sessions(WatchSessionVariables)),
    Row("CreateReActAgent", lambda bridge, metadata: CreateReActAgent(bridge.host_sessions, bridge.agents, metadata)),
    Row(
        "ExecuteAgent",
        lambda bridge, metadata: ExecuteAgent(bridge.host_sessions, bridge.agents, metadata),
        reactor=HoldingReactor,
    ),
    Row("HealthCheck", _health),
    Row("GetMetrics", _metrics),
)


_PHASES = {
    1: ("InitializeSession", "CleanupSession", "ExecuteTool", "StreamTool"),
    2: ("GetSessionVariable", "SetSessionVariable"),
    3: ("BatchExecuteTools", "CreateReActAgent", "ExecuteAgent"),
}
"""The phase in which an rpc is served; rpcs without an entry come with the fourth (T-176)."""


def methods_of(bridge: Bridge, rows: Sequence[Row] = ROWS, *, phase: int = 4) -> tuple[Method, ...]:
    """The methods that the gRPC transport serves. It also gives `HostSessions` the capabilities that hosts see."""
    rows = [one if _phase_of(one.name) <= phase else unbuilt(one.name) for one in rows]
    bridge.host_sessions.capabilities = tuple(
        _CAPABILITIES[one.name] for one in rows if one.is_built and one.name in _CAPABILITIES
    )
    return tuple(_method(bridge, one) for one in rows)


def _phase_of(name: str) -> int:
    return next((number for number, names in _PHASES.items() if name in names), 4)


def _method(bridge: Bridge, row: Row) -> Method:
    make, knows_peer = partial(row.make, bridge), bridge.watch.audit is not None
    most = bridge.settings.message_bytes
    if row.is_call:
        return CallMethod(
            SERVICE, row.name, make, knows_peer=knows_peer, max_message_bytes=most, takes_one=True, reactor=row.reactor
        )
    return LoopMethod(
        SERVICE, row.name, make, row.reactor, knows_peer=knows_peer, max_message_bytes=most, takes_one=True
    )
