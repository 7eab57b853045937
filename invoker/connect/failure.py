"""The errors with which a call can end, as its caller sees them.

These are not part of the tree in `invoker.errors`: those are errors that an invoker sends to its peers, these are what
a client gets from its peer, which may be any invoker in any language.
"""

from __future__ import annotations

import re
from typing import Self

from invoker.errors import Status

_TOO_LARGE = re.compile(r"CLIENT: Received message larger than max \((\d+) vs\. (\d+)\)")


class CallFailed(Exception):
    """The call ended with a status other than OK.

    Attributes:
        status: The status that the peer chose, or that gRPC chose instead of it (cancelled, deadline, connection lost).
        detail: The peer's text, such as ``Invoker: Unexpected Error: ValueError: boom``.
    """

    def __init__(self, status: Status, detail: str = "") -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.status.name}: {self.detail}" if self.detail else self.status.name

    @classmethod
    def by_caller(cls) -> Self:
        """The error of a call that its own caller has cancelled."""
        return cls(Status.CANCELLED, "the caller cancelled")


class ConnectFailed(CallFailed):
    """There was no connection, so the function was not called."""


class UsageError(Exception):
    """The command line has an invalid argument; the text says what to give instead."""


class UnknownName(UsageError):
    """An argument is given by name, and only the server knows the position of this name."""


def explained(status: Status, detail: str, target: str) -> str:
    """Replace gRPC's own text about an ending by one that says what to do; a peer's text stays unchanged.

    gRPC has no codes for these cases, so its texts are compared; only texts for people depend on the result.
    """
    if status is Status.UNAVAILABLE and "Connection refused" in detail and "failed to connect" in detail:
        return f"nothing listens at {target}; start the server, or check host and port"
    if status is Status.UNAVAILABLE and "errors resolving" in detail:
        return f"the host of {target} is not known; check its spelling"
    if "Received http2 header with status" in detail or "http1.x server" in detail:
        return (
            f"{target} speaks HTTP and not gRPC, so it may be the HTTP port of the server; give its gRPC port, "
            "which is 8081 unless GRPC_PORT says otherwise"
        )
    if found := _TOO_LARGE.search(detail):
        return (
            f"a value of {found[1]} bytes came back, which exceeds the limit of this client, "
            f"{found[2]} bytes (max_output_bytes)"
        )
    return detail
