"""Translates errors of the engine into GraphPipe errors with codes (docs/reference/graphpipe.md 2.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    InternalError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    NotReady,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.message import Headers
from invoker.protocols.graphpipe.model import Model, ModelPort
from invoker.tensors import Code, GraphPipeError, TensorType, spelled

Met: TypeAlias = tuple[ModelPort, TensorType, tuple[int, ...]]
"""An input, with the type and the shape of its tensor."""


class ConfigRefused(GraphPipeError, ValueError):
    """The config of a request does not have the form that the function needs (E17)."""

    def __init__(self, detail: str) -> None:
        super().__init__(Code.CONFIG, detail)


# the first matching class counts
_BY_CLASS: Final[tuple[tuple[type[InvocationError], Code], ...]] = (
    (EncodeError, Code.BAD_OUTPUT),
    (UnsupportedMediaType, Code.TYPE_MISMATCH),
    (DecodeError, Code.TYPE_MISMATCH),
    (NotAcceptable, Code.TYPE_MISMATCH),  # G-074: the value of the function cannot be a tensor
    (ProtocolViolation, Code.BAD_OUTPUT),
    (Overloaded, Code.OVERLOADED),  # the same request may succeed later
    (LimitExceeded, Code.TOO_LARGE),  # the same request can never succeed
    (NotReady, Code.NOT_READY),
    (ShuttingDown, Code.NOT_READY),
    (DeadlineExceeded, Code.TIMEOUT),
    (Cancelled, Code.CANCELLED),
)

_BY_STATUS: Final = {
    Status.CANCELLED: Code.CANCELLED,
    Status.DEADLINE_EXCEEDED: Code.TIMEOUT,
    Status.RESOURCE_EXHAUSTED: Code.OVERLOADED,
    Status.UNAVAILABLE: Code.NOT_READY,
}
"""The codes for statuses that a function chooses; any other status counts as a failure of the function."""

_OTHER_KINDS: Final = ("application/json", "application/x-www-form-urlencoded", "text/plain")
"""Media types that clients do not use for buffers, unlike many others."""


def translated(error: InvocationError, model: Model | None = None, met: Sequence[Met] = ()) -> GraphPipeError:
    """Translate the error of an invocation into a GraphPipe error.

    Args:
        error: The error; if it, or its cause, is a GraphPipe error, that one is returned.
        model: The model, for the names of its inputs and outputs.
        met: The types and shapes of the tensors that came.

    Returns:
        The error without a traceback (G-065); for a bug of the invoker also without the detail.
    """
    if isinstance(error, GraphPipeError):
        return error
    if isinstance(error, DecodeError) and isinstance(error.__cause__, GraphPipeError):
        return GraphPipeError(error.__cause__.code, _renamed(error, model, met))
    if isinstance(error, StatusError):
        return GraphPipeError(_BY_STATUS.get(error.status, Code.FUNCTION_FAILED), error.detail)
    if isinstance(error, InternalError):
        return GraphPipeError(Code.FUNCTION_FAILED, str(error))
    code = next((code for cls, code in _BY_CLASS if isinstance(error, cls)), Code.FUNCTION_FAILED)
    return GraphPipeError(code, _renamed(error, model, met))


def explained(error: GraphPipeError, metadata: Headers) -> GraphPipeError:
    """Add a hint to an error if the client seems to send plain HTTP requests to a model.

    Args:
        error: The error of a refused request; only an error about its bytes gets a hint.
        metadata: The metadata of the conversation, such as the headers of an HTTP request.
    """
    kind = metadata.get("content-type", "").partition(";")[0]
    if error.code is not Code.MALFORMED or kind not in _OTHER_KINDS:
        return error
    return GraphPipeError(error.code, f"{error.detail}; it came as {kind}, and a GraphPipe buffer is expected here")


def _renamed(error: InvocationError, model: Model | None, met: Sequence[Met]) -> str:
    """The detail of an error, with the peer's name of the input or output, and the type and shape of its tensor."""
    place = error.place
    if model is None or place is None or place.index is None:
        return error.detail
    if place.kind == "input" and place.index < len(met):
        port, type_, shape = met[place.index]
        sent = f"{spelled(type_)} {list(shape)}" if error.met == port.media_type else ""
        return error.said_at(f"input '{port.name}'", sent)
    if place.kind == "output" and place.index < len(model.outputs):
        own = f" '{place.name}'" if place.name else ""  # the author of the function uses this name
        return error.said_at(f"output '{model.outputs[place.index].name}'{own}")
    return error.detail
