"""What a function may know about its invocation."""

from __future__ import annotations

import time

import pytest

from invoker.context import Context, Inputs
from invoker.message import Headers


def test_R038_inputs_are_looked_up_by_index_and_by_name() -> None:
    """The caller's names go before the function's own."""
    inputs = Inputs(["a", "b"], ("numbers", "xs"), ("xs", "ys"))
    assert (inputs[0], inputs[-1], inputs["numbers"], inputs["xs"], inputs["ys"]) == ("a", "b", "a", "b", "b")
    assert (list(inputs), len(inputs)) == (["a", "b"], 2)


def test_R038_an_unknown_input_is_told_with_those_that_exist() -> None:
    """By name and by index."""
    with pytest.raises(KeyError, match="no input is named 'z'; there are 'numbers'"):
        Inputs(["a"], ("numbers",))["z"]
    with pytest.raises(IndexError):
        Inputs(["a"])[3]


def test_R057_of_equal_names_the_first_wins() -> None:
    """Duplicates and odd names are accepted."""
    assert Inputs(["a", "b", "c"], ("x y", "x y", ""))["x y"] == "a"


def test_R059_names_and_metadata_are_exposed() -> None:
    """As the caller sent them."""
    context = Context(
        "i1", "fn", input_names=("in",), output_names=("out",), accepts=("*/*",), metadata=Headers({"A": "b"})
    )
    assert (context.invocation_id, context.function, context.accepts) == ("i1", "fn", ("*/*",))
    assert (context.input_names, context.output_names, context.metadata["a"]) == (("in",), ("out",), "b")
    assert repr(context) == "Context(invocation_id='i1', function='fn')"


def test_remaining_counts_down_to_zero() -> None:
    """None without a deadline, never negative."""
    assert Context().remaining() is None
    left = Context(deadline=time.monotonic() + 100).remaining()
    assert left is not None
    assert 90 < left <= 100
    assert Context(deadline=time.monotonic() - 100).remaining() == 0


def test_cancelled_asks_each_time() -> None:
    """It is a view, not a copy."""
    answers = [False, True]
    context = Context(is_cancelled=lambda: answers.pop(0))
    assert (context.cancelled, context.cancelled, Context().cancelled) == (False, True, False)


def test_it_is_slotted() -> None:
    """A misspelt attribute is an error at once."""
    with pytest.raises(AttributeError):
        Context().dead_line = 1  # type: ignore[attr-defined]
