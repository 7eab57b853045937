"""`tests.attack.leaks`: what some hundred calls leave behind, as many again do not add to."""

from __future__ import annotations

import pytest

from tests.attack.leaks import ATTACKS, FUNCTIONS
from tests.attack.runner import probed, victim

pytestmark = pytest.mark.timeout(30)


def test_as_many_calls_again_add_nothing() -> None:
    """No task, no thread, no descriptor; some memory, since few calls do not warm up the allocator."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS["leaks"], target, 0.1)
    assert account.failures == 0
    figures = account.figures
    assert int(figures["calls"]) == 800
    assert int(figures["more tasks"]) <= 0
    assert int(figures["more files"]) <= 0
    assert int(figures["more threads"]) <= 0
    assert int(figures["more KiB"]) < 8 * 1024
