"""`invoker.protocols.web.openapi.examples`: calls as authors write them."""

from __future__ import annotations

from typing import Any

import pytest

import invoker
from invoker.protocols.web.openapi.examples import examples_of
from tests.protocols.web.openapi.made import told


def values(*examples: str) -> list[Any]:
    """What the examples of a function give."""

    @invoker.function(examples=examples)
    def f(a: int, b: str = "x", *, c: list[int] | None = None) -> int:
        return a

    return [one.values for one in examples_of(told(f))]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("f(1)", {"a": 1}),
        ("f(1, 'y', c=[2, 3])", {"a": 1, "b": "y", "c": [2, 3]}),
        ("f(a=-1, c=None)", {"a": -1, "c": None}),
        ("module.f(1)", {"a": 1}),
        ("list(f(1))", {"a": 1}),
        ("print(next(f(1)))", {"a": 1}),
        ("f((1, 2))", {"a": [1, 2]}),
    ],
)
def test_H069_calls_with_constants_are_examples_of_requests(text: str, made: Any) -> None:
    """By position and by name, also where what they give is shown."""
    assert values(text) == [made]


@pytest.mark.parametrize(
    "text",
    [
        "g(1)",
        "f(x)",
        "f(*[1])",
        "f(**{'a': 1})",
        "f(1, 2, 3, 4)",
        "f(d=1)",
        "x = f(1)",
        "f(",
        "",
        "words",
        "f()",
        "f(float('nan'))",
        "f(1e999)",
        "[f(1)]",
        "(" * 500,
        "f(\0)",
    ],
)
def test_H069_what_is_no_such_call_is_for_readers_only(text: str) -> None:
    """It makes no example of a request, and does not raise."""
    assert values(text) == []


def test_H069_examples_keep_their_order_and_their_text() -> None:
    """Those of the docstring, too."""

    def f(a: int) -> int:
        """Do.

        >>> f(1)
        >>> f(2)
        """
        return a

    assert [one.text for one in examples_of(told(f))] == ["f(1)", "f(2)"]


def test_H069_a_function_of_any_number_of_inputs_has_none() -> None:
    """Nobody could say which input an argument is for."""

    @invoker.function(examples=("many(1, 2)",))
    def many(*xs: int) -> int:
        return sum(xs)

    assert list(examples_of(told(many))) == []
