"""What an operator says about how invocations end."""

from __future__ import annotations

import pytest

from invoker.core.policy import ErrorPolicy
from invoker.errors import DecodeError, FunctionError, Status
from invoker.wording import Why


@pytest.mark.parametrize(("shows", "text"), [("message", "ValueError: secret"), ("type", "ValueError"), ("none", "")])
def test_R117_a_policy_says_how_much_is_shown(shows: str, text: str) -> None:
    """Of an exception of user code."""
    error = FunctionError(why=Why("ValueError: secret", "ValueError"))
    ErrorPolicy(shows).apply(error)
    assert error.detail == text


def test_R069_a_policy_says_what_bad_input_is() -> None:
    """Of input only."""
    bad, other = DecodeError("x"), FunctionError("x")
    for one in (bad, other):
        ErrorPolicy(bad_input=Status.INVALID_ARGUMENT).apply(one)
    assert (bad.status, other.status) == (Status.INVALID_ARGUMENT, Status.UNKNOWN)
