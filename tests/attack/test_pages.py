"""`tests.attack.pages`: whatever a page makes a browser send is refused, and nothing runs."""

from __future__ import annotations

import pytest

from tests.attack.pages import attack
from tests.attack.runner import victim

pytestmark = pytest.mark.timeout(20)


def test_H078_pages_run_nothing_and_read_nothing() -> None:
    """Each request is answered with 403, also for the page and the live numbers."""
    with victim() as target:
        found = attack(target, 0)
    assert (found["refused"], found["called"]) == (found["tried"], 0)
