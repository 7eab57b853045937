"""`tests.attack.steady`: ten minutes of mixed calls leave memory level."""

from __future__ import annotations

import pytest

from tests.attack.runner import IS_LONG, MIB, probed, victim
from tests.attack.steady import ARGS, ATTACKS, above, rise

SECONDS = 600.0
"""Fewer do not tell growth from what an allocator takes until it is as large as it becomes."""


@pytest.mark.skipif(not IS_LONG, reason="it takes ten minutes")
@pytest.mark.timeout(SECONDS + 60)
def test_memory_is_level_in_the_second_half_of_ten_minutes() -> None:
    """Neither its highest point nor the line through it rises by 16 MiB; all calls end as they should."""
    with victim(*ARGS) as target:
        account = probed(ATTACKS["steady"], target, SECONDS)
    figures = account.figures
    assert account.failures == 0
    assert figures["problems"] == 0, figures["first problem"]
    assert min(float(figures["above MiB"]), float(figures["rise MiB"])) < 16, figures


def test_growth_is_seen_in_figures_that_go_up_and_down() -> None:
    """Half a MiB in each of sixty windows, beside noise of 8 MiB."""
    noise = [(0, 5, 8, 2, 7, 1)[at % 6] * MIB for at in range(60)]
    assert (above(noise), round(rise(noise) / MIB, 0)) == (0, 0)
    growing = [one + at * MIB // 2 for at, one in enumerate(noise)]
    assert 8 < above(growing) / MIB < 12
    assert 13 < rise(growing) / MIB < 16
