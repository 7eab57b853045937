"""Tests of how a failed call is told."""

from __future__ import annotations

from invoker.client.failure import CallFailed, ConnectFailed
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
