"""Errors of fetching, beside `DecodeError` and `LimitExceeded`. Each protocol translates them into its own errors."""

from __future__ import annotations

from invoker.errors import InvocationError, Status


class ReferenceRefused(InvocationError):
    """The policy of the operator does not allow this URI, or the text is no URI (E-058)."""

    status = Status.PERMISSION_DENIED
    prefix = "Invoker: Reference Refused"


class ReferenceFailed(InvocationError):
    """An allowed reference is missing, or cannot be reached (E-057).

    Args:
        detail: What was met.
        is_missing: Whether the server has answered that there is no such content.
    """

    prefix = "Invoker: Reference Failed"

    def __init__(self, detail: str, *, is_missing: bool = False) -> None:
        super().__init__(detail)
        self.is_missing = is_missing
        self.status = Status.NOT_FOUND if is_missing else Status.UNAVAILABLE
