"""Quantiles, by the nearest rank."""

from __future__ import annotations

from invoker.protocols.federated.verbs.simulation.results import Times, times_of


def test_quantiles_are_values_that_were_measured() -> None:
    assert times_of([float(one) for one in range(100, 0, -1)]) == Times(1.0, 50.0, 90.0, 99.0, 100.0)
    assert times_of([3.0]) == Times(3.0, 3.0, 3.0, 3.0, 3.0)
    assert times_of([]) == Times(None, None, None, None, None)
