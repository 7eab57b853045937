"""`ErrorPolicy`: the operator's choices about how errors are shown to peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from invoker.errors import DecodeError, InvocationError, ProtocolViolation, Status

_UNKNOWN: Final = frozenset({"riff", "nested"})
"""The protocols in which invalid input has the status UNKNOWN: riff's clients know no other status for it (R-069), and
a function that calls another one with invalid input is at fault itself (E-129). In all other protocols the status is
INVALID_ARGUMENT."""


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """An operator's rules for the errors with which invocations end.

    Attributes:
        shows: The part of an exception of user code that peers see: its type and ``message``, its ``type``, or ``none``
            (R-117).
        bad_input: The status of a payload that cannot be decoded, for peers that speak riff (R-069).
    """

    shows: str = "message"
    bad_input: Status = DecodeError.status

    def apply(self, error: InvocationError, protocol: str = "riff") -> None:
        """Give an error its status and its text, before an invocation ends with it or is refused with it.

        Args:
            error: The error, which is changed.
            protocol: The protocol of the peer.
        """
        error.withhold(self.shows)
        if protocol not in _UNKNOWN:
            if isinstance(error, (DecodeError, ProtocolViolation)):
                error.status = Status.INVALID_ARGUMENT
        elif isinstance(error, DecodeError):
            error.status = self.bad_input
