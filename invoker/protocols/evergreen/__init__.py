"""Evergreen sessions: nodes, chunks and actions (docs/reference/evergreen.md).

Authors import its options from here; they are loaded when somebody asks for one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invoker.protocols.evergreen.options import Nodes

__all__ = ["Nodes"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from invoker.protocols.evergreen import options

    return getattr(options, name)
