"""Evergreen sessions: nodes, chunks and actions (docs/reference/evergreen.md).

Authors import the options of `@function` from here; they are loaded on first use.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.evergreen.options import Nodes

__all__ = ["Nodes"]

__getattr__, __dir__ = lazy(__name__, {"options": "Nodes"}, __name__)
