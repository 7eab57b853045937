"""`tests.attack.hollow`: rows without elements are refused at once, at no cost."""

from __future__ import annotations

import pytest

from tests.attack.hollow import ATTACKS, FUNCTIONS
from tests.attack.runner import probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(20)


@pytest.mark.parametrize(("name", "status"), [("http", 500), ("riff", 2), ("rows", 413)])
def test_rows_without_elements_cost_nothing(name: str, status: int) -> None:
    """No more than a moment, and no more than 100 MiB above a process at rest."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[name], target, 0)
    assert account.figures["status"] == status
    assert float(account.figures["took s"]) < SLOW
    assert int(account.figures["peak MiB"]) < 200
    assert account.held_s < 0.25 * SLOW
