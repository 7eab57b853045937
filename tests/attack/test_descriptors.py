"""`tests.attack.descriptors`: `/livez` is answered by a process without descriptors, and the log stays short."""

from __future__ import annotations

import sys

import pytest

from tests.attack.descriptors import ATTACKS
from tests.attack.runner import probed, victim
from tests.conftest import SLOW

pytestmark = [
    pytest.mark.timeout(20),
    pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are lowered, which takes Linux"),
]


@pytest.mark.parametrize("name", ATTACKS)
def test_livez_answers_without_descriptors(name: str) -> None:
    """None fails; there are a few lines in the log, not one for each try."""
    with victim() as target:
        account = probed(ATTACKS[name], target, 1.0)
        assert (account.failures, account.held_s < 0.5 * SLOW) == (0, True), account
        assert account.lines <= 2, target.process.log
        assert account.answers > 3, account
