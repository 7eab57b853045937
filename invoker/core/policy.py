"""`ErrorPolicy`: what an operator says about how invocations end."""

from __future__ import annotations

from dataclasses import dataclass

from invoker.errors import DecodeError, InvocationError, Status

__all__ = ["ErrorPolicy"]


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """What an operator says about how invocations end.

    Attributes:
        shows: What peers see of an exception of user code: its type and ``message``, its ``type``, or ``none`` (R-117).
        bad_input: The status of a payload that cannot be decoded (R-069).
    """

    shows: str = "message"
    bad_input: Status = DecodeError.status

    def apply(self, error: InvocationError) -> None:
        """Give an error its status and its text; an invocation ends with it."""
        error.withhold(self.shows)
        if isinstance(error, DecodeError):
            error.status = self.bad_input
