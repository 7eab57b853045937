"""The tool bridge: sessions, tools, variables and agents for a host program. Pure: frames in, steps out.

Authors import its options from here; they are loaded when somebody asks for one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invoker.protocols.toolbridge.options import ToolInfo

__all__ = ["ToolInfo"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from invoker.protocols.toolbridge import options

    return getattr(options, name)
