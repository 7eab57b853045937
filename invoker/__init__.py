"""A streaming function runtime: a plain function or generator becomes a streaming service.

Function authors import from here; everything else is the house's own.
"""

from invoker.author.decorator import function
from invoker.body.tee import tee
from invoker.checkpoint import Checkpoint, Update
from invoker.codecs import Codec, codec
from invoker.constraints import Field
from invoker.context import Context
from invoker.declared import Tensor
from invoker.errors import InputCancelled, NestedError, Status, StatusError, StopInvocation, VariableError
from invoker.message import Headers, Message, Metadata, Output, Ref
from invoker.rules import rule
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
    "codec",
    "function",
    "rule",
    "tee",
]

__version__ = "0.1.0"
