"""Drive Evergreen sessions: `EvergreenSession` for asyncio, `SyncEvergreenSession` for code without a loop."""

from invoker.client.evergreen.answer import Answer
from invoker.client.evergreen.attachments import attachment
from invoker.client.evergreen.media import Ref
from invoker.client.evergreen.nodes import LeafNode, Node, TreeNode
from invoker.client.evergreen.outputs import OutputNode
from invoker.client.evergreen.session import EvergreenSession
from invoker.client.evergreen.sync import SyncAnswer, SyncEvergreenSession
from invoker.client.evergreen.talk import Talk

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
