"""Drive Evergreen sessions: `EvergreenSession` for asyncio, `SyncEvergreenSession` for code without a loop."""

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
