"""A streaming function runtime: a plain function or generator becomes a streaming service.

Function authors import from here; everything else is internal.
"""

import sys
from typing import TYPE_CHECKING

if sys.argv[:1] == ["-m"]:  # `python -m` puts the current folder in front of all packages
    from invoker.author.shadows import FIRST, shadowed

    if _why := shadowed(sys.path[0], FIRST):
        sys.exit(f"invoker: {_why}")

from invoker.author.decorator import function
from invoker.author.tee import tee
from invoker.codecs import Codec, codec
from invoker.context import Context
from invoker.errors import InputCancelled, NestedError, Status, StatusError, StopInvocation, VariableError
from invoker.fields.constraints import Field
from invoker.fields.rules import rule
from invoker.lazy import lazy as _lazy
from invoker.message import Headers, Message, Metadata, Output, Ref
from invoker.moved import lead
from invoker.tensors.declared import Tensor
from invoker.version import __version__ as __version__

if TYPE_CHECKING:
    from invoker.protocols.toolbridge.toolerror import ToolError
    from invoker.server.mounted import asgi
    from invoker.server.serving import serve
    from invoker.tensors.checkpoint import Checkpoint, Update

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

lead()
# Most functions do not need these names, and the modules of some load a server.
__getattr__, __dir__ = _lazy(
    __name__,
    {
        "protocols.toolbridge.toolerror": "ToolError",
        "server.mounted": "asgi",
        "server.serving": "serve",
        "tensors.checkpoint": "Checkpoint Update",
    },
    __name__,
)
