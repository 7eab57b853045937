"""`tests.attack.asks`: floods of requests hold nobody up, whatever is asked for."""

from __future__ import annotations

import pytest

from tests.attack.asks import ATTACKS, FUNCTIONS
from tests.attack.runner import IS_LONG, MIB, chosen, probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(20)

FEW = ("nobody", "invocations as events", "near keys", "deep query", "nested")


@pytest.mark.parametrize("name", chosen(ATTACKS, FEW))
def test_H174_floods_of_requests_hold_nobody_up(name: str) -> None:
    """Twenty clients ask without a pause: `/livez` is answered, memory stays small, and the log is not their toy."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[name], target, 2.0 if IS_LONG else 0.7)
        assert (account.failures, account.held_s < 1.0 * SLOW) == (0, True), account
        assert int(account.figures["peak MiB"]) < 250, account
        assert account.rss_bytes < 250 * MIB, account
        log = target.process.log
    assert "Traceback" not in log, log
    assert "raised exception" not in log, log
