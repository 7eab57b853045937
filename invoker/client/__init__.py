"""Call functions of others: `RiffClient` riff invokers, `EvergreenSession` Evergreen servers, `GraphPipe` models.

`SyncRiffClient` and `SyncEvergreenSession` are for code without a loop, `AsyncGraphPipe` for code on one.
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
    "Talk",
    "Tls",
    "TreeNode",
    "attachment",
]
