"""`tests.attack.smuggling`: nothing that hides behind another request runs."""

from __future__ import annotations

import pytest

from tests.attack.runner import victim
from tests.attack.smuggling import smuggle

pytestmark = pytest.mark.timeout(20)


def test_nothing_hidden_runs() -> None:
    """Each is refused, and ends its connection."""
    with victim() as target:
        found = smuggle(target, 0)
    assert (found["hidden"], found["refused"]) == (0, found["tried"])
