"""Clients of riff invokers, Evergreen servers, GraphPipe models and tool bridges, and devices of federated compute.

`RiffClient`, `EvergreenSession`, `GraphPipe` and `ToolBridge` call functions of such servers; `SyncRiffClient`,
`SyncEvergreenSession` and `SyncToolBridge` are for code without a loop, `AsyncGraphPipe` for code on one.
`FederatedClient` and `SyncFederatedClient` are devices of federated compute, which train when a server asks.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Answer": "invoker.client.evergreen",
        "AsyncGraphPipe": "invoker.client.graphpipe",
        "Call": "invoker.client.riff",
        "CallFailed": "invoker.connect.failure",
        "ConnectFailed": "invoker.connect.failure",
        "DeviceOptions": "invoker.client.federated",
        "EvergreenSession": "invoker.client.evergreen",
        "FederatedClient": "invoker.client.federated",
        "GraphPipe": "invoker.client.graphpipe",
        "GraphPipeError": "invoker.client.graphpipe",
        "LeafNode": "invoker.client.evergreen",
        "Node": "invoker.client.evergreen",
        "Options": "invoker.client.riff",
        "OutputNode": "invoker.client.evergreen",
        "Outputs": "invoker.client.riff",
        "Received": "invoker.client.riff",
        "Ref": "invoker.client.evergreen",
        "RiffClient": "invoker.client.riff",
        "SyncAnswer": "invoker.client.evergreen",
        "SyncCall": "invoker.client.riff",
        "SyncEvergreenSession": "invoker.client.evergreen",
        "SyncFederatedClient": "invoker.client.federated",
        "SyncRiffClient": "invoker.client.riff",
        "SyncToolBridge": "invoker.client.toolbridge",
        "Talk": "invoker.client.evergreen",
        "Tls": "invoker.connect.tls",
        "ToolBridge": "invoker.client.toolbridge",
        "ToolCall": "invoker.client.toolbridge",
        "ToolCommunicationError": "invoker.client.toolbridge",
        "ToolExecutionError": "invoker.client.toolbridge",
        "TreeNode": "invoker.client.evergreen",
        "attachment": "invoker.client.evergreen",
    },
)
