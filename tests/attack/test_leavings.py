"""`tests.attack.leavings`: who leaves cancels, at whatever moment, and leaves nothing behind."""

from __future__ import annotations

import pytest

from tests.attack.leavings import ATTACKS, FUNCTIONS
from tests.attack.runner import IS_LONG, chosen, probed, victim

pytestmark = pytest.mark.timeout(30)


@pytest.mark.parametrize("moment", chosen(ATTACKS, ("every",)))
def test_H015_who_leaves_commits_nothing_and_leaves_nothing(moment: str) -> None:
    """Whole calls beside them commit; no task, thread or descriptor is more than before."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[moment], target, 0.7 if IS_LONG else 4)
        log = target.process.log
    figures = account.figures
    assert account.failures == 0, account
    assert int(figures["left"]) >= 20, account
    assert figures["commits"] == 0, account
    assert all(int(figures[f"more {one}"]) <= 0 for one in ("running", "tasks", "threads", "files")), account
    assert "Traceback" not in log, log
    assert "failed" not in log, log
