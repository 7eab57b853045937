"""The tool bridge: sessions, tools, variables and agents for a host program.

Authors import the options of `@function` from here; they are loaded on first use.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.toolbridge.options import ToolInfo

__all__ = ["ToolInfo"]

__getattr__, __dir__ = lazy(__name__, {"options": "ToolInfo"}, __name__)
