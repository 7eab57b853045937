"""GraphPipe: serves functions as models with tensors (docs/reference/graphpipe.md).

Authors import the options of `@function` from here; they are loaded on first use.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.graphpipe.options import Casting, Rows

__all__ = ["Casting", "Rows"]

__getattr__, __dir__ = lazy(__name__, {"options": "Casting Rows"}, __name__)
