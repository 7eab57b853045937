"""`tests.attack.slow`: what slow readers of streams were sent is given back when they leave."""

from __future__ import annotations

import pytest

from tests.attack.runner import MIB, chosen, probed, victim
from tests.attack.slow import ATTACKS, FUNCTIONS

pytestmark = pytest.mark.timeout(60)

FEW = ("ndjson agives large",)
LARGE = [name for name in ATTACKS if name.endswith("large")]
"""Small values of sync functions are not counted one by one; `docs/how-to/harden.md` says what they leave."""
BUDGET = 128 * MIB


@pytest.mark.parametrize("name", chosen(LARGE, FEW))
def test_slow_readers_leave_little_behind(name: str) -> None:
    """A hundred of them, of streams that would be 2.7 GB; 128 MiB may be held."""
    with victim(FUNCTIONS, env={"INVOKER_MEMORY_BYTES": str(BUDGET)}) as target:
        account = probed(ATTACKS[name], target, 2)
    assert account.failures == 0
    assert int(account.figures["after MiB"]) < 150, account.figures
