"""`tests.attack.frames`: what HTTP/2 allows a client to do to streams costs little, or ends its connection."""

from __future__ import annotations

import pytest

from tests.attack.frames import ATTACKS, FUNCTIONS
from tests.attack.runner import IS_LONG, MIB, chosen, probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(20)


@pytest.mark.parametrize("name", chosen(ATTACKS, ("taken back", "table", "no window")))
def test_H175_frames_against_streams_hold_nobody_up(name: str) -> None:
    """`/livez` is answered, and memory stays flat: a thousand streams without a window take less than 0.3 MiB each."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[name], target, 2.0 if IS_LONG else 0.8)
        assert (account.failures, account.held_s < 1.0 * SLOW) == (0, True), account
        assert account.rss_bytes < 350 * MIB, account
        assert "Traceback" not in target.process.log
