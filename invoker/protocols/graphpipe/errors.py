"""Errors of the machinery in GraphPipe's words: which code each ending has (docs/reference/graphpipe.md 2.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from invoker.codecs.refusal import unnamed
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
from invoker.protocols.graphpipe.model import Model, Port
from invoker.tensors import Code, GraphPipeError, TensorType, spelled

__all__ = ["ConfigRefused", "Met", "explained", "names_of", "translated"]

Met: TypeAlias = tuple[Port, TensorType, tuple[int, ...]]
"""An input, and the type and shape of what came for it."""


class ConfigRefused(GraphPipeError, ValueError):
    """The config of a request is not what its function takes (E17)."""

    def __init__(self, detail: str) -> None:
        super().__init__(Code.CONFIG, detail)


# The first class that fits decides.
_BY_CLASS: Final[tuple[tuple[type[InvocationError], Code], ...]] = (
    (EncodeError, Code.BAD_OUTPUT),
    (UnsupportedMediaType, Code.TYPE_MISMATCH),
    (DecodeError, Code.TYPE_MISMATCH),
    (NotAcceptable, Code.TYPE_MISMATCH),  # G-074: what the function gives is nothing that tensors can be
    (ProtocolViolation, Code.BAD_OUTPUT),
    (Overloaded, Code.OVERLOADED),  # another time there may be room for the same request
    (LimitExceeded, Code.TOO_LARGE),  # and this one never fits
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
"""What a function may say by choosing a status itself; anything else is its failure."""

_OTHER_KINDS: Final = ("application/json", "application/x-www-form-urlencoded", "text/plain")
"""What a body may be said to be that is no buffer; clients send buffers as all sorts of things."""


def translated(error: InvocationError, names: Mapping[str, str] | None = None) -> GraphPipeError:
    """Say how an invocation ended with a code of GraphPipe.

    Args:
        error: One that has a code already is kept, also where it is the cause of another.
        names: By the first words that the machinery has for an input or output, those for its peer; the first that fit
            are taken.

    Returns:
        Without a traceback (G-065); of our own defects not even the detail.
    """
    if isinstance(error, GraphPipeError):
        return error
    if isinstance(error, DecodeError) and isinstance(error.__cause__, GraphPipeError):
        return GraphPipeError(error.__cause__.code, _renamed(error.detail, names or {}))
    if isinstance(error, StatusError):
        return GraphPipeError(_BY_STATUS.get(error.status, Code.FUNCTION_FAILED), error.detail)
    if isinstance(error, InternalError):
        return GraphPipeError(Code.FUNCTION_FAILED, str(error))
    code = next((code for cls, code in _BY_CLASS if isinstance(error, cls)), Code.FUNCTION_FAILED)
    return GraphPipeError(code, _renamed(error.detail, names or {}))


def names_of(model: Model, met: Sequence[Met]) -> Iterator[tuple[str, str]]:
    """What the peer knows inputs and outputs as, by the words that errors of codecs begin with; for `translated`."""
    for index, (port, type_, shape) in enumerate(met):
        yield f"input #{index}: {port.media_type} ", f"input '{port.name}': {spelled(type_)} {list(shape)} "
        yield f"input #{index}:", f"input '{port.name}':"
    for index, port in enumerate(model.outputs):
        yield f"output #{index}:", f"output '{port.name}':"
        yield f"output #{index} ", f"output '{port.name}' "


def explained(error: GraphPipeError, metadata: Headers) -> GraphPipeError:
    """Tell those who take a model for plain HTTP that it is none.

    Args:
        error: Why a request is refused; what is wrong with its bytes gets a hint.
        metadata: Of the conversation, such as the headers of an HTTP request.
    """
    kind = metadata.get("content-type", "").partition(";")[0]
    if error.code is not Code.MALFORMED or kind not in _OTHER_KINDS:
        return error
    return GraphPipeError(error.code, f"{error.detail}; it came as {kind}, and a GraphPipe buffer is expected here")


def _renamed(detail: str, names: Mapping[str, str]) -> str:
    detail = unnamed(detail) if names else detail
    first = next((one for one in names if detail.startswith(one)), "")
    return names[first] + detail[len(first) :] if first else detail
