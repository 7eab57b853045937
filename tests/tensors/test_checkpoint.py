"""`invoker.tensors.checkpoint`: named arrays, and their weight."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from invoker import Checkpoint, Update


def test_a_checkpoint_reads_like_a_dict() -> None:
    """Lookups, iteration and `dict(...)` work; arrays are kept and not copied."""
    weights = np.arange(6.0).reshape(2, 3)
    one = Checkpoint({"weights": weights, "bias": [1, 2]})
    assert one["weights"] is weights
    assert one["bias"].tolist() == [1, 2]
    assert (list(one), len(one), "bias" in one, "nothing" in one) == (["weights", "bias"], 2, True, False)
    assert dict(one).keys() == one.keys()
    assert one.get("nothing") is None
    assert [name for name, _ in one.items()] == ["weights", "bias"]
    assert next(iter(one.values())) is weights
    assert repr(one) == "Checkpoint(weights: float64[2, 3], bias: int64[2])"
    assert Checkpoint(one) == one


def test_updates_have_a_weight() -> None:
    """The weight is a float, and a part of equality."""
    one = Update({"w": [1.0]}, examples=3)
    assert (one.examples, type(one.examples)) == (3.0, float)
    assert Update({"w": [1.0]}).examples == 1.0
    assert one == Update({"w": [1.0]}, examples=3)
    assert one != Update({"w": [1.0]}, examples=4)
    assert repr(one) == "Update(w: float64[1], examples=3)"
    assert repr(Update(examples=2)) == "Update(examples=2)"


@pytest.mark.parametrize(
    "other", [{"w": [1, 3]}, {"w": [1.0, 2.0]}, {"v": [1, 2]}, {"w": [1, 2], "v": [1]}, {"w": [[1, 2]]}]
)
def test_checkpoints_differ_by_name_shape_dtype_and_element(other: Any) -> None:
    """Any of them makes a difference; the order of names does not; an update is no checkpoint."""
    one = Checkpoint({"w": [1, 2]})
    assert one != Checkpoint(other)
    assert one != Update({"w": [1, 2]})
    assert one != {"w": [1, 2]}
    assert Checkpoint({"a": [1], "b": [2]}) == Checkpoint({"b": [2], "a": [1]})
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@pytest.mark.parametrize("name", ["", "__examples__", "x" * 201, 5])
def test_names_that_cannot_be_are_refused(name: Any) -> None:
    """Empty and reserved names, names that are too long, and what is no text."""
    with pytest.raises(ValueError, match="cannot name an array"):
        Checkpoint({name: [1]})


@pytest.mark.parametrize("value", ["text", [object()], np.zeros(1, [("a", int)]), np.zeros(1, "M8[s]")])
def test_only_numbers_are_taken(value: Any) -> None:
    """Text, objects, records and times are refused."""
    with pytest.raises(ValueError, match=r"array 'w' has elements of dtype .*; a checkpoint takes numbers only"):
        Checkpoint({"w": value})


@pytest.mark.parametrize("examples", [-1, float("nan"), float("inf")])
def test_a_weight_is_finite_and_not_negative(examples: float) -> None:
    """Zero is a weight; what would spoil every mean is refused."""
    assert Update({"w": [1]}, examples=0).examples == 0
    with pytest.raises(ValueError, match="must be a finite number that is not negative"):
        Update({"w": [1]}, examples=examples)


def test_naming_them_does_not_import_numpy() -> None:
    """`from invoker import Checkpoint` and a registry of codecs leave numpy alone."""
    code = "import sys; from invoker import Checkpoint, Update; from invoker.codecs import builtin; builtin(); "
    code += "Checkpoint(); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
