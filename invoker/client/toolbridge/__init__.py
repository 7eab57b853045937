"""Calls the tools of a bridge, in sessions with variables and agents."""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.toolbridge.client.agents import Action, Agent, Answer, Observation, Thought
    from invoker.protocols.toolbridge.client.answers import (
        Batch,
        Health,
        Histogram,
        Item,
        Metrics,
        SessionInfo,
        ToolResult,
    )
    from invoker.protocols.toolbridge.client.client import ToolBridge
    from invoker.protocols.toolbridge.client.failure import ToolCommunicationError, ToolExecutionError
    from invoker.protocols.toolbridge.client.session import ToolCall, ToolSession
    from invoker.protocols.toolbridge.client.specs import Argument, Limits, Rules, Tool
    from invoker.protocols.toolbridge.client.streams import Stream, ToolStream
    from invoker.protocols.toolbridge.client.sync import (
        SyncAgent,
        SyncStream,
        SyncToolBridge,
        SyncToolSession,
        SyncVariables,
    )
    from invoker.protocols.toolbridge.client.variables import MISSING, Change, Variable, VariableRow, Variables

__all__ = [
    "MISSING",
    "Action",
    "Agent",
    "Answer",
    "Argument",
    "Batch",
    "Change",
    "Health",
    "Histogram",
    "Item",
    "Limits",
    "Metrics",
    "Observation",
    "Rules",
    "SessionInfo",
    "Stream",
    "SyncAgent",
    "SyncStream",
    "SyncToolBridge",
    "SyncToolSession",
    "SyncVariables",
    "Thought",
    "Tool",
    "ToolBridge",
    "ToolCall",
    "ToolCommunicationError",
    "ToolExecutionError",
    "ToolResult",
    "ToolSession",
    "ToolStream",
    "Variable",
    "VariableRow",
    "Variables",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "agents": "Action Agent Answer Observation Thought",
        "answers": "Batch Health Histogram Item Metrics SessionInfo ToolResult",
        "client": "ToolBridge",
        "failure": "ToolCommunicationError ToolExecutionError",
        "session": "ToolCall ToolSession",
        "specs": "Argument Limits Rules Tool",
        "streams": "Stream ToolStream",
        "sync": "SyncAgent SyncStream SyncToolBridge SyncToolSession SyncVariables",
        "variables": "Change MISSING Variable VariableRow Variables",
    },
    "invoker.protocols.toolbridge.client",
)
