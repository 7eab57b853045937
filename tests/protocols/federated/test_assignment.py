"""Which task a client gets."""

from __future__ import annotations

from collections import Counter
from random import Random

from invoker.protocols.federated.assignment import choose, eligible


def test_F046_tasks_are_chosen_in_proportion_to_their_weights():
    """Of 4000 seeded clients with weights 1 and 3, chi-square is below its 99.9 % bound for one degree of freedom."""
    dice = Random(7)
    counts = Counter(choose({"a": 1.0, "b": 3.0}, dice) for _ in range(4000))
    square = (counts["a"] - 1000) ** 2 / 1000 + (counts["b"] - 3000) ** 2 / 3000
    assert square < 10.83, counts


def test_F046_the_same_seed_chooses_the_same():
    """Two runs are equal; another seed gives another run."""
    runs = [[choose({"a": 1.0, "b": 1.0}, dice) for _ in range(40)] for dice in (Random(1), Random(1), Random(2))]
    assert runs[0] == runs[1] != runs[2]


def test_F046_weights_of_any_size_are_chosen_from():
    """The greatest and the least float of 32 bits."""
    assert choose({"a": 3.4e38, "b": 3.4e38}, Random(1)) in "ab"
    assert choose({"a": 1e-45, "b": 3.4e38}, Random(1)) == "b"


def test_F043_tasks_without_a_weight_are_never_assigned():
    """An empty list means none; F-045: names that no task has are ignored."""
    assert eligible(["a", "b"], {"b": 2.0, "c": 5.0}) == {"b": 2.0}
    assert eligible(["a", "b"], {}) == {}


def test_F042_a_client_that_says_nothing_may_get_any_task():
    """All are as good as any other."""
    assert eligible(["a", "b"], None) == {"a": 1.0, "b": 1.0}
