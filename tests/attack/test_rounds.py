"""`tests.attack.rounds`: reports that inflate to 30 MB are read beside the loop."""

from __future__ import annotations

import pytest

from tests.attack.rounds import ATTACKS, DEVICES, rounds_file
from tests.attack.runner import probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("name", list(ATTACKS))
def test_F086_livez_answers_while_sixteen_devices_report_30_mb_in_29_kb(name: str) -> None:
    """All are taken, one or two at a time, so that the process has room for a few of them and not for sixteen."""
    with rounds_file() as path, victim(path) as target:
        account = probed(ATTACKS[name], target, 0)
    assert account.failures == 0
    assert account.held_s < 0.12 * SLOW  # checked on the loop, the reports of npz hold it for twice as long
    figures = account.figures
    assert int(figures.pop("peak MiB")) < 400
    assert int(figures.pop("after MiB")) < 200
    assert figures == {"thanked": DEVICES}
