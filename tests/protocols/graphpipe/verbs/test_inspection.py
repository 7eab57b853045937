"""What ``invoker inspect`` tells of a function with arrays; whole outputs are in tests/cli/test_inspect.py."""

from __future__ import annotations

import numpy as np

from invoker.author.prepare import prepare_function
from invoker.protocols.graphpipe.verbs.inspection import described, rows


def scale(x: np.ndarray) -> np.ndarray:
    return x * 2


def double(x: int) -> int:
    return x * 2


def test_a_function_with_arrays_is_told_as_a_model() -> None:
    """A line for the model, and one for each tensor."""
    spec = prepare_function(scale).spec
    assert [label.strip() for label, _ in rows(spec)] == ["model", "input", "output"]
    assert [one["Name"] for one in described(spec)["model"]["inputs"]] == ["x"]


def test_another_function_is_none() -> None:
    """JSON says so, and readers see no line."""
    spec = prepare_function(double).spec
    assert described(spec) == {"model": None}
    assert rows(spec) == []
