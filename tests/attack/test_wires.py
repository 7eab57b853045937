"""`tests.attack.wires`: numbers that take long to read hold nobody up, on the wires that `test_values` leaves out."""

from __future__ import annotations

import pytest

from tests.attack.runner import chosen, probed, victim
from tests.attack.wires import ATTACKS, FUNCTIONS
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(60)

FEW = ("connect-variadic-large", "tool-loop-tiny")


@pytest.mark.parametrize("name", chosen(ATTACKS, FEW))
def test_livez_answers_while_numbers_are_read(name: str) -> None:
    """Two clients send 4 MB each, over and over; nothing that they send is an error of ours."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[name], target, 0.2)
        log = target.process.log
    assert account.failures == 0
    assert account.held_s < 0.25 * SLOW
    assert "status 500" not in account.figures
    assert "Traceback" not in log, log
