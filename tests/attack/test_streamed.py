"""`tests.attack.streamed`: nothing that hides behind a stream runs, and what follows one is answered."""

from __future__ import annotations

import pytest

from tests.attack.runner import victim
from tests.attack.streamed import ATTACKS, FUNCTIONS

pytestmark = pytest.mark.timeout(20)


@pytest.mark.parametrize("name", ATTACKS)
def test_H172_nothing_hidden_behind_a_stream_runs(name: str) -> None:
    """Each has as many responses as it has requests, and no other one commits."""
    with victim(FUNCTIONS) as target:
        found = ATTACKS[name](target, 0)
        assert (found["hidden"], found["wrong"]) == (0, ""), found
        assert "Traceback" not in target.process.log
