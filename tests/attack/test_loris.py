"""`tests.attack.loris`: slow clients cost little, and nobody else waits for them."""

from __future__ import annotations

import pytest

from tests.attack.loris import ATTACKS
from tests.attack.runner import MIB, probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(20)


@pytest.mark.parametrize("kind", ATTACKS)
def test_slow_clients_hold_nobody_up(kind: str) -> None:
    """Five hundred of them: `/livez` answers at once, and memory stays small; tests/transports tell when they end."""
    with victim() as target:
        account = probed(ATTACKS[kind], target, 1.0)
        assert (account.failures, account.held_s < 0.5 * SLOW) == (0, True), account
        assert account.rss_bytes < 200 * MIB, account
        assert "raised exception" not in target.process.log
