"""Chooses the task of a client: a random one of the open tasks for which the client is eligible (F-046)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random


def eligible(names: Sequence[str], weights: Mapping[str, float] | None) -> dict[str, float]:
    """The tasks for which a client is eligible, with their weights.

    Args:
        names: The names of all tasks.
        weights: The weights that the client sent; unknown names are ignored (F-045), and tasks without a weight are
            never assigned (F-043). None: the client sent none, so all tasks have the same weight.
    """
    if weights is None:
        return dict.fromkeys(names, 1.0)
    return {name: weights[name] for name in names if name in weights}


def choose(weights: Mapping[str, float], dice: Random) -> str:
    """Choose a name with a probability that is proportional to its weight."""
    names = list(weights)
    if len(names) == 1:
        return names[0]
    # Weights are 32-bit floats on the wire, so their sum is finite.
    return dice.choices(names, [weights[name] for name in names])[0]
