"""`tests.attack.large`: whoever takes large items, fast or not at all, holds nobody up."""

from __future__ import annotations

import pytest

from tests.attack.large import ATTACKS, FUNCTIONS
from tests.attack.runner import IS_LONG, MIB, chosen, probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(30)

FEW = ("bytes of 50", "bytes http/2 gzip", "numbers sync of 50", "text socket")


@pytest.mark.parametrize("name", chosen(ATTACKS, FEW))
def test_H170_H171_large_items_hold_nobody_up(name: str) -> None:
    """Ten clients take them at once: `/livez` answers within half a second, and a few items are in memory."""
    with victim(FUNCTIONS) as target:
        before = target.rss_bytes
        account = probed(ATTACKS[name], target, 3.0 if IS_LONG else 1.2)
        assert (account.failures, account.held_s < 0.5 * SLOW) == (0, True), account
        # Ten clients with one item each and the value itself; before, base64 and queues made it gigabytes.
        assert int(account.figures["peak MiB"]) - before // MIB < 50 * 12, account
        assert "Traceback" not in target.process.log
