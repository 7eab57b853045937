"""Faults, and what is wrong with the text of any status."""

from __future__ import annotations

import grpc
import pytest

from invoker_conformance.faults import LEAKS, Fault, encoded_size

UNKNOWN = grpc.StatusCode.UNKNOWN
VIOLATION = Fault(UNKNOWN, "Invoker: Protocol Violation")
OTHER = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Invoker: Unsupported Media Type", grpc.StatusCode.NOT_FOUND)


def test_a_fault_matches_its_code_and_prefix_only() -> None:
    """After the prefix comes a colon or nothing."""
    assert VIOLATION.matches(UNKNOWN, "Invoker: Protocol Violation: second start")
    assert VIOLATION.matches(UNKNOWN, "Invoker: Protocol Violation")
    assert not VIOLATION.matches(UNKNOWN, "Invoker: Protocol Violations")
    assert not OTHER.matches(UNKNOWN, "Invoker: Unsupported Media Type")
    assert str(VIOLATION) == "UNKNOWN 'Invoker: Protocol Violation'"


def test_a_fault_may_have_a_code_that_is_as_good() -> None:
    """With the same text."""
    assert OTHER.matches(grpc.StatusCode.NOT_FOUND, "Invoker: Unsupported Media Type: x")
    assert str(OTHER) == "INVALID_ARGUMENT or NOT_FOUND 'Invoker: Unsupported Media Type'"


@pytest.mark.parametrize(("text", "size"), [("ab ~", 4), ("%", 3), ("\n", 3), ("日", 9)])
def test_a_text_is_measured_as_it_is_encoded(text: str, size: int) -> None:
    """All but printable ASCII takes three bytes, and so does the percent sign."""
    assert encoded_size(text) == size


@pytest.mark.parametrize(
    "text", ["Traceback (most", "Unexpected <class 'x'>", 'File "x"', "a.py line", "/site-packages/"]
)
def test_what_tells_of_the_inside_is_found(text: str) -> None:
    """Wherever it stands."""
    assert LEAKS.search(f"Invoker: {text}")
