"""GraphPipe: the same functions as tensor models (docs/reference/graphpipe.md).

Authors import its options from here; they are loaded on first use.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.graphpipe.options import Casting, Rows

__all__ = ["Casting", "Rows"]

__getattr__, __dir__ = lazy(__name__, {"options": "Casting Rows"}, __name__)
