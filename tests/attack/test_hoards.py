"""`tests.attack.hoards`: what sessions of the tool bridge keep is bounded all together, and ends with them."""

from __future__ import annotations

import pytest

from tests.attack.hoards import ATTACKS, FUNCTIONS, NO_COLLECTOR, STILL_MIB
from tests.attack.runner import IS_LONG, MIB, probed, victim

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(("name", "budget"), [("few results", 96), ("few results", 72), ("few lists", 96)])
def test_T070_T169_what_sessions_keep_goes_with_them_without_the_collector(name: str, budget: int) -> None:
    """Four sessions of 63 MB of results; ten whose hosts list 9 MB of tools, of which some are refused.

    The results are kept as far as there is room, and no call is refused for them.
    """
    with victim(NO_COLLECTOR, env={"INVOKER_MEMORY_BYTES": str(budget * MIB)}) as target:
        account = probed(ATTACKS[name], target, 1)
    assert account.failures == 0
    assert int(account.figures["still MiB"]) < STILL_MIB[False], account.figures
    assert int(account.figures["after MiB"]) < 150, account.figures
    assert ("refused" in account.figures and int(account.figures["refused"]) > 0) == (name == "few lists")


@pytest.mark.skipif(not IS_LONG, reason="it takes a minute")
@pytest.mark.parametrize("name", ["results", "lists"])
def test_T070_T169_what_sessions_keep_is_bounded_all_together(name: str) -> None:
    """Forty sessions of 63 MB of results; a hundred whose hosts list 9 MB of tools; with the default settings."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[name], target, 5)
    assert account.failures == 0
    assert int(account.figures["still MiB"]) < STILL_MIB[True], account.figures
    assert int(account.figures["after MiB"]) < 150, account.figures
