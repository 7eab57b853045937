"""`invoker.core.http`: what a request's head says."""

from __future__ import annotations

from invoker.core.http import RequestHead


def test_values_of_a_header_are_joined() -> None:
    """In wire order, whatever the case of its name; a header that is missing is empty."""
    head = RequestHead("POST", "/", headers=[("Accept", "a"), ("X", "x"), ("ACCEPT", "b")])
    assert (head.value("accept"), head.value("x"), head.value("y")) == ("a, b", "x", "")
