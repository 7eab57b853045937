"""GraphPipe: the same functions as tensor models (docs/reference/graphpipe.md).

Authors import its options from here; they are loaded when somebody asks for one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invoker.protocols.graphpipe.options import Casting, Rows

__all__ = ["Casting", "Rows"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from invoker.protocols.graphpipe import options

    return getattr(options, name)
