"""What bounds the invocations of a function."""

from __future__ import annotations

from invoker.core.limits import LimitReached, TimedOut
from invoker.errors import Status


def test_T054_the_error_of_a_timeout_tells_which_limit_and_its_value() -> None:
    """The bridge fills its details from the attributes, the other protocols send the text."""
    error = TimedOut(1.5, is_functions=True)
    assert (error.status, error.timeout_s, error.is_functions) == (Status.DEADLINE_EXCEEDED, 1.5, True)
    assert str(error).endswith("the invocation took longer than the 1.5 s that its function allows")
    assert "was asked for" in str(TimedOut(2, is_functions=False))


def test_T058_the_error_of_a_limit_carries_code_scope_limit_and_when_to_come_again() -> None:
    """No code reads its text."""
    error = LimitReached("2 are running", code="concurrency", scope="function", limit=2)
    assert (error.status, error.code, error.scope) == (Status.RESOURCE_EXHAUSTED, "concurrency", "function")
    assert (error.limit, error.retry_after_s) == (2, None)
