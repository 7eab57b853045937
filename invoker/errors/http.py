"""Maps gRPC's statuses to HTTP's for servers, and HTTP's to gRPC's for clients, by one table.

Connect, Google's API guide and riff's HTTP adapter agree on it; statuses that only HTTP distinguishes are added for
clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from invoker.errors import Status

HTTP_STATUS: Final[Mapping[Status, int]] = {
    Status.INVALID_ARGUMENT: 400,
    Status.FAILED_PRECONDITION: 400,
    Status.OUT_OF_RANGE: 400,
    Status.UNAUTHENTICATED: 401,
    Status.PERMISSION_DENIED: 403,
    Status.NOT_FOUND: 404,
    Status.ABORTED: 409,
    Status.ALREADY_EXISTS: 409,
    Status.RESOURCE_EXHAUSTED: 429,
    Status.CANCELLED: 499,
    Status.INTERNAL: 500,
    Status.UNKNOWN: 500,
    Status.DATA_LOSS: 500,
    Status.UNIMPLEMENTED: 501,
    Status.UNAVAILABLE: 503,
    Status.DEADLINE_EXCEEDED: 504,
}
"""The HTTP status of a response whose only content is an error, by the error's gRPC status."""

STATUS: Final[Mapping[int, Status]] = {http: status for status, http in reversed([*HTTP_STATUS.items()])}
"""The gRPC status of an error of which only the HTTP status is known; of several, the first one in the table above."""

_REFUSED: Final[Mapping[int, Status]] = {
    **STATUS,
    405: Status.UNIMPLEMENTED,
    406: Status.INVALID_ARGUMENT,
    408: Status.DEADLINE_EXCEEDED,
    413: Status.RESOURCE_EXHAUSTED,
    415: Status.INVALID_ARGUMENT,
    426: Status.FAILED_PRECONDITION,
    431: Status.RESOURCE_EXHAUSTED,
    502: Status.UNAVAILABLE,
    505: Status.UNIMPLEMENTED,
}


def status_of(http: int, otherwise: Status = Status.UNKNOWN) -> Status:
    """The gRPC status for a response that may come from HTTP itself, a proxy or another kind of server.

    Args:
        http: The HTTP status of the response.
        otherwise: The status for 500, and for HTTP statuses that are not in the table.
    """
    return otherwise if http == 500 else _REFUSED.get(http, otherwise)
