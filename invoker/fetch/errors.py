"""Errors of fetching, in addition to `DecodeError` and `LimitExceeded`. Each protocol translates them into its own."""

from __future__ import annotations

from invoker.errors import InvocationError, Status


class ReferenceRefused(InvocationError):
    """The policy of the operator does not allow this URI, or the text is not a URI (E-058)."""

    status = Status.PERMISSION_DENIED
    prefix = "Invoker: Reference Refused"


class ReferenceFailed(InvocationError):
    """An allowed reference is missing, or cannot be reached (E-057).

    Args:
        detail: The text for the peer.
        is_missing: Whether the server has answered that the content does not exist.
    """

    prefix = "Invoker: Reference Failed"

    def __init__(self, detail: str, *, is_missing: bool = False) -> None:
        super().__init__(detail)
        self.is_missing = is_missing
        self.status = Status.NOT_FOUND if is_missing else Status.UNAVAILABLE
