"""How a call ends when it does not end well, as its caller sees it.

These are not part of the tree in `invoker.errors`: that tree says what an invoker tells its peers, this says what
a peer told us, which may be any invoker in any language.
"""

from __future__ import annotations

from invoker.errors import Status

__all__ = ["CallFailed", "ConnectFailed", "UnknownName", "UsageError"]


class CallFailed(Exception):
    """The call ended with a status other than OK.

    Attributes:
        status: The status the peer chose, or gRPC for it (cancelled, deadline, connection lost).
        detail: The peer's text, such as ``Invoker: Unexpected Error: ValueError: boom``.
    """

    def __init__(self, status: Status, detail: str = "") -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.status.name}: {self.detail}" if self.detail else self.status.name


class ConnectFailed(CallFailed):
    """No connection came about, so the function was not called."""


class UsageError(Exception):
    """The command line asks for something that cannot be done; the text says what to give instead."""


class UnknownName(UsageError):
    """A name is given, and where it stands is not said; the server may tell."""
