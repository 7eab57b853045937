"""The forms of errors in Connect and gRPC-Web: codes, HTTP statuses, the end of a stream, trailers.

Source: Connect protocol, "Error Codes", "Error End-Stream"; gRPC over HTTP2, "Responses".
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from invoker.errors import InvocationError, Status
from invoker.errors.http import HTTP_STATUS

_LONGEST: Final = 4096


def code_of(status: Status) -> str:
    """The name of a status in Connect, such as ``canceled``."""
    return "canceled" if status is Status.CANCELLED else status.name.lower()


def http_status(error: InvocationError) -> int:
    """The HTTP status of a response that has only this error."""
    return HTTP_STATUS[Status(error.status)]


def error_body(error: InvocationError) -> bytes:
    """The JSON body of a response that has only this error."""
    return msgspec.json.encode(_error(error))


def end_of_stream(error: InvocationError | None) -> bytes:
    """The last message of a Connect stream, in JSON."""
    return msgspec.json.encode({} if error is None else {"error": _error(error)})


def trailers(error: InvocationError | None) -> bytes:
    """The last message of a gRPC-Web response: status and text."""
    if error is None:
        return b"grpc-status: 0\r\n"
    text = quote(_clipped(str(error)), safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
    return f"grpc-status: {int(error.status)}\r\ngrpc-message: {text}\r\n".encode()


def _error(error: InvocationError) -> dict[str, Any]:
    return {"code": code_of(Status(error.status)), "message": _clipped(str(error))}


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
