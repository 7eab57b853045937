"""`tests.attack.rounds`: reports that inflate to 60 MB are read beside the loop."""

from __future__ import annotations

import pytest

from tests.attack.rounds import ATTACKS, DEVICES, rounds_file
from tests.attack.runner import MIB, probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("name", list(ATTACKS))
def test_F086_livez_answers_while_sixteen_devices_report_60_mb_in_58_kb(name: str) -> None:
    """All are taken, one or two at a time, so that the process has room for a few of them and not for sixteen."""
    with rounds_file() as path, victim(path) as target:
        account = probed(ATTACKS[name], target, 0)
    assert account.failures == 0
    assert account.livez_s < 0.25 * SLOW
    assert account.figures == {"thanked": DEVICES}
    assert account.rss_bytes < 600 * MIB
