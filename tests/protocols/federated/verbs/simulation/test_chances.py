"""Distributions of times."""

from __future__ import annotations

from random import Random
from statistics import fmean, median

import pytest

from invoker.protocols.federated.verbs.simulation.chances import read_spread


def drawn(text: str) -> list[float]:
    dice = Random(1)
    return [read_spread(text).draw(dice) for _ in range(4000)]


def test_each_kind_is_what_it_says() -> None:
    assert set(drawn("2.5")) == {2.5}
    assert min(drawn("1..3")) >= 1.0
    assert max(drawn("1..3")) <= 3.0
    assert fmean(drawn("1..3")) == pytest.approx(2.0, rel=0.05)
    assert fmean(drawn("exp:2")) == pytest.approx(2.0, rel=0.1)
    assert median(drawn("lognormal:2,0.5")) == pytest.approx(2.0, rel=0.1)
    assert set(drawn("exp:0")) == {0.0}


@pytest.mark.parametrize("text", ["", "x", "-1", "3..1", "exp:", "lognormal:1", "1..2..3", "exp:-1", "1e3"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a distribution of times; give SECONDS"):
        read_spread(text)
