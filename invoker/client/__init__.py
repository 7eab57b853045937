"""Call functions of others: of riff invokers, Evergreen servers, GraphPipe models and tool bridges.

`RiffClient`, `EvergreenSession`, `GraphPipe` and `ToolBridge` do so;
`SyncRiffClient`, `SyncEvergreenSession` and `SyncToolBridge` are for code without a loop, `AsyncGraphPipe` for code on
one.
"""

from invoker.client.evergreen import (
    Answer,
    EvergreenSession,
    LeafNode,
    Node,
    OutputNode,
    Ref,
    SyncAnswer,
    SyncEvergreenSession,
    Talk,
    TreeNode,
    attachment,
)
from invoker.client.failure import CallFailed, ConnectFailed
from invoker.client.graphpipe import AsyncGraphPipe, GraphPipe, GraphPipeError
from invoker.client.riff import Call, Options, Outputs, Received, RiffClient, SyncCall, SyncRiffClient
from invoker.client.tls import Tls
from invoker.client.toolbridge import (
    SyncToolBridge,
    ToolBridge,
    ToolCall,
    ToolCommunicationError,
    ToolExecutionError,
)

__all__ = [
    "Answer",
    "AsyncGraphPipe",
    "Call",
    "CallFailed",
    "ConnectFailed",
    "EvergreenSession",
    "GraphPipe",
    "GraphPipeError",
    "LeafNode",
    "Node",
    "Options",
    "OutputNode",
    "Outputs",
    "Received",
    "Ref",
    "RiffClient",
    "SyncAnswer",
    "SyncCall",
    "SyncEvergreenSession",
    "SyncRiffClient",
    "SyncToolBridge",
    "Talk",
    "Tls",
    "ToolBridge",
    "ToolCall",
    "ToolCommunicationError",
    "ToolExecutionError",
    "TreeNode",
    "attachment",
]
