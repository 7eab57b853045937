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
        "Action": "invoker.protocols.toolbridge.client.agents",
        "Agent": "invoker.protocols.toolbridge.client.agents",
        "Answer": "invoker.protocols.toolbridge.client.agents",
        "Argument": "invoker.protocols.toolbridge.client.specs",
        "Batch": "invoker.protocols.toolbridge.client.answers",
        "Change": "invoker.protocols.toolbridge.client.variables",
        "Health": "invoker.protocols.toolbridge.client.answers",
        "Histogram": "invoker.protocols.toolbridge.client.answers",
        "Item": "invoker.protocols.toolbridge.client.answers",
        "Limits": "invoker.protocols.toolbridge.client.specs",
        "MISSING": "invoker.protocols.toolbridge.client.variables",
        "Metrics": "invoker.protocols.toolbridge.client.answers",
        "Observation": "invoker.protocols.toolbridge.client.agents",
        "Rules": "invoker.protocols.toolbridge.client.specs",
        "SessionInfo": "invoker.protocols.toolbridge.client.answers",
        "Stream": "invoker.protocols.toolbridge.client.streams",
        "SyncAgent": "invoker.protocols.toolbridge.client.sync",
        "SyncStream": "invoker.protocols.toolbridge.client.sync",
        "SyncToolBridge": "invoker.protocols.toolbridge.client.sync",
        "SyncToolSession": "invoker.protocols.toolbridge.client.sync",
        "SyncVariables": "invoker.protocols.toolbridge.client.sync",
        "Thought": "invoker.protocols.toolbridge.client.agents",
        "Tool": "invoker.protocols.toolbridge.client.specs",
        "ToolBridge": "invoker.protocols.toolbridge.client.client",
        "ToolCall": "invoker.protocols.toolbridge.client.session",
        "ToolCommunicationError": "invoker.protocols.toolbridge.client.failure",
        "ToolExecutionError": "invoker.protocols.toolbridge.client.failure",
        "ToolResult": "invoker.protocols.toolbridge.client.answers",
        "ToolSession": "invoker.protocols.toolbridge.client.session",
        "ToolStream": "invoker.protocols.toolbridge.client.streams",
        "Variable": "invoker.protocols.toolbridge.client.variables",
        "VariableRow": "invoker.protocols.toolbridge.client.variables",
        "Variables": "invoker.protocols.toolbridge.client.variables",
    },
)
