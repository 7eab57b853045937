"""`tests.attack.floods`, for a moment each: the floods end, and everybody else is served meanwhile."""

from __future__ import annotations

import pytest

from tests.attack.floods import FLOODS
from tests.attack.runner import probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(20)

CALM = "11"


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_and_livez_answers_meanwhile(name: str) -> None:
    """GOAWAY says ENHANCE_YOUR_CALM to each connection that was ended, and `/livez` never takes long."""
    with victim() as target:
        account = probed(FLOODS[name], target, 3 if name == "reset" else 0.7)  # those begin to run
        ended = {how.partition(":")[0] for how in str(account.figures["ended"]).split(",")}
        assert CALM in ended, account
        assert ended <= {CALM, "open"}, account
        assert (account.failures, account.held_s < 0.2 * SLOW) == (0, True), account
