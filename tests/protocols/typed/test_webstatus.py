"""Errors of Connect and gRPC-Web."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest

from invoker.errors import Cancelled, InternalError, Status, StatusError
from invoker.protocols.typed.webstatus import code_of, end_of_stream, error_body, http_status, trailers


@pytest.mark.parametrize(
    ("status", "code", "http"),
    [
        (Status.CANCELLED, "canceled", 499),
        (Status.UNKNOWN, "unknown", 500),
        (Status.INVALID_ARGUMENT, "invalid_argument", 400),
        (Status.DEADLINE_EXCEEDED, "deadline_exceeded", 504),
        (Status.NOT_FOUND, "not_found", 404),
        (Status.ALREADY_EXISTS, "already_exists", 409),
        (Status.PERMISSION_DENIED, "permission_denied", 403),
        (Status.RESOURCE_EXHAUSTED, "resource_exhausted", 429),
        (Status.FAILED_PRECONDITION, "failed_precondition", 400),
        (Status.ABORTED, "aborted", 409),
        (Status.OUT_OF_RANGE, "out_of_range", 400),
        (Status.UNIMPLEMENTED, "unimplemented", 501),
        (Status.INTERNAL, "internal", 500),
        (Status.UNAVAILABLE, "unavailable", 503),
        (Status.DATA_LOSS, "data_loss", 500),
        (Status.UNAUTHENTICATED, "unauthenticated", 401),
    ],
)
def test_H111_codes_are_those_of_connect(status, code, http):
    """Names, and the status of HTTP beside each."""
    assert code_of(status) == code
    assert http_status(StatusError(status, "x")) == http


def test_H111_an_error_is_json():
    """In a body of its own, or as the end of a stream."""
    assert json.loads(error_body(Cancelled("gone"))) == {"code": "canceled", "message": "Invoker: Cancelled: gone"}
    assert json.loads(end_of_stream(InternalError()))["error"]["code"] == "internal"
    assert end_of_stream(None) == b"{}"


def test_H112_trailers_are_lines():
    """The text is percent-encoded, and cannot begin another line."""
    assert trailers(None) == b"grpc-status: 0\r\n"
    error = StatusError(Status.INVALID_ARGUMENT, "100% no,\r\nx: ä")
    status, message, rest = trailers(error).split(b"\r\n")
    assert (status, rest) == (b"grpc-status: 3", b"")
    assert message == b"grpc-message: 100%25 no,%0D%0Ax: %C3%A4"
    assert unquote(message.decode().partition(": ")[2]) == "100% no,\r\nx: ä"


def test_a_long_text_is_cut():
    """Clients have limits."""
    assert len(trailers(StatusError(Status.UNKNOWN, "x" * 9000))) < 5000
