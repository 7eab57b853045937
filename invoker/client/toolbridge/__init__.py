"""Calls the tools of a bridge, in sessions with variables and agents."""

from invoker.client.toolbridge.agents import Action, Agent, Answer, Observation, Thought
from invoker.client.toolbridge.answers import Batch, Health, Histogram, Item, Metrics, SessionInfo, ToolResult
from invoker.client.toolbridge.client import ToolBridge
from invoker.client.toolbridge.failure import ToolCommunicationError, ToolExecutionError
from invoker.client.toolbridge.session import ToolCall, ToolSession
from invoker.client.toolbridge.specs import Argument, Limits, Rules, Tool
from invoker.client.toolbridge.streams import Stream, ToolStream
from invoker.client.toolbridge.sync import SyncAgent, SyncStream, SyncToolBridge, SyncToolSession, SyncVariables
from invoker.client.toolbridge.variables import MISSING, Change, Variable, VariableRow, Variables

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
