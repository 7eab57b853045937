"""`tests.attack.streams`: streams that are made to be held, or to be slow, cost what the process may spend."""

from __future__ import annotations

import pytest

from tests.attack.runner import IS_LONG, MIB, Account, probed, victim
from tests.attack.streams import ATTACKS, FUNCTIONS, MEMORY
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(30)

BUDGET = 32 * MIB


def attacked(name: str, *, seconds: float = 2 if IS_LONG else 0.8, livez_s: float = 1.0) -> tuple[Account, str]:
    """An attack on a process that may hold 32 MiB, and what that logged."""
    with victim(FUNCTIONS, env={"INVOKER_MEMORY_BYTES": str(BUDGET)}) as target:
        account = probed(ATTACKS[name], target, seconds)
        log = target.process.log
    assert (account.failures, account.held_s < livez_s * SLOW) == (0, True), account
    assert "Traceback" not in log, log
    assert "failed" not in log, log
    return account, log


@pytest.mark.parametrize("name", MEMORY)
def test_H162_items_that_never_end_are_counted(name: str) -> None:
    """A hundred clients begin items of 3 MiB: whoever does not fit is told so by 503, or by the last item."""
    account, log = attacked(name, seconds=4 * SLOW)
    figures = account.figures
    assert "this process holds" in log, figures
    # Uncounted it would be all that was sent, 375 MiB; what parsers and reads copy comes to some more than the budget.
    assert int(figures["peak MiB"]) < 60 + 3 * BUDGET // MIB, figures


@pytest.mark.parametrize("name", sorted({*ATTACKS} - {*MEMORY}))
def test_H164_streams_leave_time_and_memory_for_others(name: str) -> None:
    """`/livez` answers meanwhile, and memory stays small."""
    account, _ = attacked(name, livez_s=2.0)
    figures = account.figures
    assert int(figures["peak MiB"]) < (700 if name == "unread huge" else 200), figures
