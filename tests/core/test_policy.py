"""What an operator says about how invocations end."""

from __future__ import annotations

import pytest

from invoker.core.policy import ErrorPolicy
from invoker.errors import (
    DecodeError,
    EncodeError,
    FunctionError,
    LimitExceeded,
    ProtocolViolation,
    Status,
    StatusError,
)
from invoker.errors.wording import Why


@pytest.mark.parametrize(("shows", "text"), [("message", "ValueError: secret"), ("type", "ValueError"), ("none", "")])
def test_R117_a_policy_says_how_much_is_shown(shows: str, text: str) -> None:
    """Of an exception of user code."""
    error = FunctionError(why=Why("ValueError: secret", "ValueError"))
    ErrorPolicy(shows).apply(error)
    assert error.detail == text


@pytest.mark.parametrize("said", [Status.UNKNOWN, Status.INVALID_ARGUMENT])
@pytest.mark.parametrize("protocol", ["riff", "http", "websocket", "typed", "evergreen", "nested", ""])
def test_R069_what_callers_send_wrongly_is_unknown_to_riff_only(protocol: str, said: Status) -> None:
    """The setting is for the payloads of riff's callers; faults of the function are no matter of it."""
    is_riff = protocol in ("riff", "nested")  # a function that calls wrongly has failed itself (E-129)
    expected = [
        (DecodeError("x"), said if is_riff else Status.INVALID_ARGUMENT),
        (ProtocolViolation("x"), Status.UNKNOWN if is_riff else Status.INVALID_ARGUMENT),
        (FunctionError("x"), Status.UNKNOWN),
        (EncodeError("x"), Status.UNKNOWN),
        (StatusError(Status.UNKNOWN, "x"), Status.UNKNOWN),
        (LimitExceeded("x"), Status.RESOURCE_EXHAUSTED),
    ]
    for error, status in expected:
        ErrorPolicy(bad_input=said).apply(error, protocol)
        assert error.status == status


def test_R069_a_policy_says_what_bad_input_is() -> None:
    """Of input only."""
    bad, other = DecodeError("x"), FunctionError("x")
    for one in (bad, other):
        ErrorPolicy(bad_input=Status.INVALID_ARGUMENT).apply(one)
    assert (bad.status, other.status) == (Status.INVALID_ARGUMENT, Status.UNKNOWN)
