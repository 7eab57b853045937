"""Tests of how a failed call is told."""

from __future__ import annotations

import pytest

from invoker.connect.failure import CallFailed, ConnectFailed, explained
from invoker.errors import Status


def test_text_is_the_status_and_the_detail() -> None:
    """What a person reads names the status first."""
    assert (
        str(CallFailed(Status.UNKNOWN, "Invoker: Unexpected Error: boom")) == "UNKNOWN: Invoker: Unexpected Error: boom"
    )
    assert str(CallFailed(Status.CANCELLED)) == "CANCELLED"


def test_connect_failed_is_a_failed_call() -> None:
    """One `except` catches both."""
    error = ConnectFailed(Status.UNAVAILABLE, "nobody")
    assert isinstance(error, CallFailed)
    assert (error.status, error.detail) == (Status.UNAVAILABLE, "nobody")


@pytest.mark.parametrize(
    ("status", "detail", "text"),
    [
        (
            Status.UNAVAILABLE,
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:9: Connection refused",
            "nothing listens at h:1; start the server, or check host and port",
        ),
        (Status.UNAVAILABLE, "errors resolving h:1: [...]", "the host of h:1 is not known; check its spelling"),
        (
            Status.RESOURCE_EXHAUSTED,
            "Stream removed (CLIENT: Received message larger than max (9 vs. 8))",
            "a value of 9 bytes came back, which exceeds the limit of this client, 8 bytes (max_output_bytes)",
        ),
        (
            Status.UNAVAILABLE,
            "Invoker: Shutting Down: Connection refused",
            "Invoker: Shutting Down: Connection refused",
        ),
        (Status.UNKNOWN, "Invoker: Unexpected Error: x", "Invoker: Unexpected Error: x"),
        (
            Status.RESOURCE_EXHAUSTED,
            "Received message larger than max (9 vs. 8)",
            "Received message larger than max (9 vs. 8)",
        ),
    ],
)
def test_words_of_grpc_are_explained(status: Status, detail: str, text: str) -> None:
    """Those of peers are left as they are."""
    assert explained(status, detail, "h:1") == text


@pytest.mark.parametrize("detail", ["Received http2 header with status: 404", "Trying to connect an http1.x server"])
def test_the_http_port_is_told_from_a_grpc_port(detail: str) -> None:
    """With the port to give instead."""
    assert explained(Status.UNIMPLEMENTED, detail, "h:1").startswith("h:1 speaks HTTP and not gRPC, so it may be")
