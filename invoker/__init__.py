"""A streaming function runtime: a plain function or generator becomes a streaming service.

Function authors import from here; everything else is the house's own.
"""

import sys
from typing import TYPE_CHECKING, Any

if sys.argv[:1] == ["-m"]:  # the current folder is in front of all packages
    from invoker.author.shadows import FIRST, shadowed

    if _why := shadowed(sys.path[0], FIRST):
        sys.exit(f"invoker: {_why}")

from invoker.author.decorator import function
from invoker.body.tee import tee
from invoker.codecs import Codec, codec
from invoker.constraints import Field
from invoker.context import Context
from invoker.declared import Tensor
from invoker.errors import InputCancelled, NestedError, Status, StatusError, StopInvocation, VariableError
from invoker.message import Headers, Message, Metadata, Output, Ref
from invoker.rules import rule

if TYPE_CHECKING:
    from invoker.checkpoint import Checkpoint, Update
    from invoker.mounted import asgi
    from invoker.serving import serve
    from invoker.toolerror import ToolError

__all__ = [
    "Checkpoint",
    "Codec",
    "Context",
    "Field",
    "Headers",
    "InputCancelled",
    "Message",
    "Metadata",
    "NestedError",
    "Output",
    "Ref",
    "Status",
    "StatusError",
    "StopInvocation",
    "Tensor",
    "ToolError",
    "Update",
    "VariableError",
    "asgi",
    "codec",
    "function",
    "rule",
    "serve",
    "tee",
]

__version__ = "0.1.0"

_LATER = {
    "Checkpoint": "invoker.checkpoint",
    "ToolError": "invoker.toolerror",
    "Update": "invoker.checkpoint",
    "asgi": "invoker.mounted",
    "serve": "invoker.serving",
}
"""Names whose modules are imported when somebody asks for them: most functions do without, and some take a server."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_LATER[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *_LATER]
