"""Call functions of others: of riff invokers, Evergreen servers, GraphPipe models and tool bridges; or be a device.

`RiffClient`, `EvergreenSession`, `GraphPipe` and `ToolBridge` do so;
`SyncRiffClient`, `SyncEvergreenSession` and `SyncToolBridge` are for code without a loop, `AsyncGraphPipe` for code on
one. `FederatedClient` and `SyncFederatedClient` are devices of federated compute, which train when a server asks.
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
from invoker.client.federated import DeviceOptions, FederatedClient, SyncFederatedClient
from invoker.client.graphpipe import AsyncGraphPipe, GraphPipe, GraphPipeError
from invoker.client.riff import Call, Options, Outputs, Received, RiffClient, SyncCall, SyncRiffClient
from invoker.client.toolbridge import (
    SyncToolBridge,
    ToolBridge,
    ToolCall,
    ToolCommunicationError,
    ToolExecutionError,
)
from invoker.connect.failure import CallFailed, ConnectFailed
from invoker.connect.tls import Tls

__all__ = [
    "Answer",
    "AsyncGraphPipe",
    "Call",
    "CallFailed",
    "ConnectFailed",
    "DeviceOptions",
    "EvergreenSession",
    "FederatedClient",
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
    "SyncFederatedClient",
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
