"""Clients of Evergreen sessions: `EvergreenSession` for asyncio, `SyncEvergreenSession` for code without a loop."""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.evergreen.client.answer import Answer
    from invoker.protocols.evergreen.client.attachments import attachment
    from invoker.protocols.evergreen.client.media import Ref
    from invoker.protocols.evergreen.client.nodes import LeafNode, Node, TreeNode
    from invoker.protocols.evergreen.client.outputs import OutputNode
    from invoker.protocols.evergreen.client.session import EvergreenSession
    from invoker.protocols.evergreen.client.sync import SyncAnswer, SyncEvergreenSession
    from invoker.protocols.evergreen.client.talk import Talk

__all__ = [
    "Answer",
    "EvergreenSession",
    "LeafNode",
    "Node",
    "OutputNode",
    "Ref",
    "SyncAnswer",
    "SyncEvergreenSession",
    "Talk",
    "TreeNode",
    "attachment",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "answer": "Answer",
        "attachments": "attachment",
        "media": "Ref",
        "nodes": "LeafNode Node TreeNode",
        "outputs": "OutputNode",
        "session": "EvergreenSession",
        "sync": "SyncAnswer SyncEvergreenSession",
        "talk": "Talk",
    },
    "invoker.protocols.evergreen.client",
)
