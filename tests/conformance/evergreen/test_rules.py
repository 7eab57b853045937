"""Rules that hold for every status of a session."""

from __future__ import annotations

import grpc
import pytest

from invoker_conformance.evergreen.rules import ACT, FRAG, check_detail


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        (grpc.StatusCode.UNKNOWN, "boom"),
        (grpc.StatusCode.UNKNOWN, "Unexpected <class 'ValueError'>: boom"),
        (grpc.StatusCode.UNKNOWN, "Evergreen: Action Failed: Traceback (most recent call last)"),
        (grpc.StatusCode.INTERNAL, "in /srv/module.py line 3"),
        (grpc.StatusCode.INVALID_ARGUMENT, "Invoker: Protocol Violation"),
        (grpc.StatusCode.NOT_FOUND, "no such action"),
        (grpc.StatusCode.PERMISSION_DENIED, ""),
        (grpc.StatusCode.UNKNOWN, "Evergreen: Action Failed: " + "日" * 500),
    ],
)
def test_E116_a_detail_that_leaks_or_has_other_words_breaks_a_rule(code: grpc.StatusCode, detail: str) -> None:
    """Length counts as it is encoded on the wire."""
    assert check_detail(code, detail) is not None


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        (grpc.StatusCode.OK, ""),
        (grpc.StatusCode.UNKNOWN, "Evergreen: Action Failed: ValueError: boom"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max (5 vs. 4)"),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed"),
        (grpc.StatusCode.CANCELLED, "Locally cancelled by application!"),
    ],
)
def test_other_details_are_fine(code: grpc.StatusCode, detail: str) -> None:
    """What gRPC itself says of sizes and connections has its own words."""
    assert check_detail(code, detail) is None


def test_faults_are_told_apart() -> None:
    """By their words, where the code is the same."""
    assert FRAG.matches(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Invalid Node Fragment: seq -1")
    assert not ACT.matches(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Invalid Node Fragment: seq -1")
