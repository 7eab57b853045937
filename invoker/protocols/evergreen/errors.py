"""The statuses that an Evergreen session ends with: table 0.1 of docs/reference/evergreen.md.

An error text begins with the title of its kind, then says what was met, what was expected and where. Errors of the
engine are translated to these kinds, too (`translated`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    InternalError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.errors.wording import Place
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused

__all__ = [
    "EvergreenError",
    "bad_action",
    "bad_fragment",
    "bad_graph",
    "bad_input",
    "failed",
    "incomplete",
    "limit",
    "not_found",
    "reference_failed",
    "reference_refused",
    "shutting_down",
    "target_not_found",
    "translated",
]


class EvergreenError(InvocationError):
    """The error with which a session ends.

    Args:
        status: The status of the conversation.
        title: The first words of the text, as in the table.
        detail: What was met, what was expected, where.
    """

    def __init__(self, status: Status, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title

    def __str__(self) -> str:
        return f"{self.title}: {self.detail}" if self.detail else self.title


bad_fragment: Final = partial(EvergreenError, Status.INVALID_ARGUMENT, "Evergreen: Invalid Node Fragment")
"""FRAG: rules of seq, metadata, kind, id or ownership are broken."""

bad_graph: Final = partial(EvergreenError, Status.INVALID_ARGUMENT, "Evergreen: Invalid Node Graph")
"""GRAPH: a node includes itself, directly or by its children."""

bad_action: Final = partial(EvergreenError, Status.INVALID_ARGUMENT, "Evergreen: Invalid Action")
"""ACT: wrong names of parameters, duplicates, or output ids in use."""

not_found: Final = partial(EvergreenError, Status.NOT_FOUND, "Evergreen: Action Not Found")
"""ANF: no function has the name of the action."""

target_not_found: Final = partial(EvergreenError, Status.NOT_FOUND, "Evergreen: Target Not Found")
"""TNF: an action names a target that is not configured."""

bad_input: Final = partial(EvergreenError, Status.INVALID_ARGUMENT, "Evergreen: Bad Input")
"""BAD: a media type that the parameter does not take, or a payload that cannot be decoded."""

incomplete: Final = partial(EvergreenError, Status.FAILED_PRECONDITION, "Evergreen: Incomplete Input")
"""MISS: a node that is needed cannot become complete any more."""

reference_refused: Final = partial(EvergreenError, Status.PERMISSION_DENIED, "Evergreen: Reference Refused")
"""REFD: the policy does not allow this URI."""

failed: Final = partial(EvergreenError, Status.UNKNOWN, "Evergreen: Action Failed")
"""FAIL: the function raised, or gave a value that cannot be sent."""

limit: Final = partial(EvergreenError, Status.RESOURCE_EXHAUSTED, "Evergreen: Limit Exceeded")
"""LIM: a limit of sizes, numbers or depth."""

shutting_down: Final = partial(EvergreenError, Status.UNAVAILABLE, "Evergreen: Shutting Down")
"""SHUT: the process drains and takes no more work."""


def reference_failed(detail: str, *, is_missing: bool = False) -> EvergreenError:
    """The error REFX: a reference is allowed, but is missing or cannot be reached."""
    status = Status.NOT_FOUND if is_missing else Status.UNAVAILABLE
    return EvergreenError(status, "Evergreen: Reference Failed", detail)


def translated(error: InvocationError, where: str, names: Mapping[Place, str] | None = None) -> InvocationError:
    """Translate an error of the engine into one of this protocol.

    Args:
        error: The error with which an invocation ended.
        where: The name of the action or node, for the text.
        names: The client's names of inputs and outputs, by place.

    Returns:
        The error to send. Errors of this protocol, errors that the function chose, cancellation and deadlines are
            returned unchanged.
    """
    if isinstance(error, EvergreenError | StatusError | Cancelled | DeadlineExceeded | InternalError):
        return error
    words = names.get(error.place) if names and error.place is not None else None
    said = error.detail if words is None else error.said_at(words)
    detail = f"{where}: {said}" if said else where
    if isinstance(error, DecodeError | UnsupportedMediaType):
        return bad_input(detail)
    if isinstance(error, NotAcceptable):
        return EvergreenError(Status.INVALID_ARGUMENT, "Evergreen: Not Acceptable", detail)
    if isinstance(error, LimitExceeded):
        return limit(detail)
    if isinstance(error, ReferenceRefused):
        return reference_refused(detail)
    if isinstance(error, ReferenceFailed):
        return reference_failed(detail, is_missing=error.is_missing)
    if isinstance(error, ShuttingDown):
        return shutting_down(detail)
    if isinstance(error, ProtocolViolation):
        return bad_action(detail)
    return failed(detail)
