"""What ``invoker inspect`` tells of a function as an action; whole outputs are in tests/cli/test_inspect.py."""

from __future__ import annotations

from invoker.author.prepare import prepare_function
from invoker.protocols.evergreen.verbs.inspection import described, rows


def double(x: int, times: int = 2) -> int:
    return x * times


def test_a_function_is_told_as_an_action() -> None:
    """Behind what may be left out stands a question mark."""
    spec = prepare_function(double).spec
    [(label, text)] = rows(spec)
    assert label == "action"
    assert text.startswith("double(x: ")
    assert "times?: " in text
    assert described(spec)["action"]["name"] == "double"
