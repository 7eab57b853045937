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
        "invoker.client.evergreen": "Answer EvergreenSession LeafNode Node OutputNode Ref "
        "SyncAnswer SyncEvergreenSession Talk TreeNode attachment",
        "invoker.client.federated": "DeviceOptions FederatedClient SyncFederatedClient",
        "invoker.client.graphpipe": "AsyncGraphPipe GraphPipe GraphPipeError",
        "invoker.client.riff": "Call Options Outputs Received RiffClient SyncCall SyncRiffClient",
        "invoker.client.toolbridge": "SyncToolBridge ToolBridge ToolCall ToolCommunicationError ToolExecutionError",
        "invoker.connect.failure": "CallFailed ConnectFailed",
        "invoker.connect.tls": "Tls",
    },
)
