"""`invoker.core.problems`: who gets problems, and what they say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.http import Response
from invoker.core.problems import PROBLEM, as_problem, problem_of, wants_problems

REFUSED = Response(405, (("Content-Type", "text/plain"), ("Allow", "GET")), b"use GET to read this\n", close=True)


@pytest.mark.parametrize(
    ("accept", "wants"),
    [
        (PROBLEM, True), (f"application/json, {PROBLEM}", True), (f"{PROBLEM}, text/plain;q=0.5", True),
        (PROBLEM.upper(), True), (f"image/png, {PROBLEM};q=0.1", True), (f"{PROBLEM};q=0.5, application/json", False),
        (f"text/plain, {PROBLEM};q=0.9", False), (f"{PROBLEM};q=0", False), ("*/*", False), ("application/*", False),
        ("application/json", False), ("", False),
    ],
)  # fmt: skip
def test_H155_a_client_asks_for_problems_by_name(accept: str, wants: bool) -> None:
    """It ranks neither JSON nor text higher; a wildcard is no name."""
    assert wants_problems(accept) is wants


def test_H155_a_refusal_in_text_becomes_a_problem() -> None:
    """With its other headers, and its end of the connection."""
    made = as_problem(REFUSED, PROBLEM)
    assert (made.status, made.headers, made.close) == (405, (("Content-Type", PROBLEM), ("Allow", "GET")), True)
    assert json.loads(made.body) == {
        "type": "about:blank", "title": "Method Not Allowed", "status": 405, "detail": "use GET to read this",
        "code": "UNIMPLEMENTED",
    }  # fmt: skip


def test_H155_what_is_no_refusal_in_text_stays() -> None:
    """So does one for a client that has not asked."""
    for response in (Response(200, REFUSED.headers, b"x"), Response(500, (), b""), Response(400, (("A", "b"),), b"x")):
        assert as_problem(response, PROBLEM) is response
    assert as_problem(REFUSED, "*/*") is REFUSED


@given(st.integers(400, 599), st.text(), st.text())
def test_any_status_has_a_title_and_a_code(status: int, detail: str, accept: str) -> None:
    """Also those that nobody knows; no Accept list is refused."""
    made = problem_of(status, detail, parameter="x")
    assert all(made[name] for name in ("title", "code"))
    assert made["parameter"] == "x"
    wants_problems(accept + PROBLEM)
