"""`tests.attack.memory`: callers together hold no more than the process may, and what they held goes back."""

from __future__ import annotations

import pytest

from tests.attack.memory import ATTACKS, FUNCTIONS
from tests.attack.runner import MIB, Account, probed, victim

pytestmark = pytest.mark.timeout(30)

BUDGET = 96 * MIB


def attacked(name: str) -> Account:
    """An attack of a quarter of the size, on a process that may hold 96 MiB."""
    with victim(FUNCTIONS, env={"INVOKER_MEMORY_BYTES": str(BUDGET)}) as target:
        account = probed(ATTACKS[name], target, 1)
    assert account.failures == 0
    assert int(account.figures["after MiB"]) < 200
    return account


def test_streams_that_nobody_reads_end_with_the_largest_first() -> None:
    """Of twelve streams of 32 MiB some are ended with RESOURCE_EXHAUSTED, and others go on."""
    figures = attacked("streams").figures
    assert int(figures["RESOURCE_EXHAUSTED"]) >= 6
    assert int(figures["CANCELLED"]) >= 1
    assert set(figures) <= {"peak MiB", "after MiB", "settled s", "RESOURCE_EXHAUSTED", "CANCELLED"}


def test_sessions_that_store_too_much_end_likewise() -> None:
    """Of six sessions of 64 MiB for which there is no action."""
    figures = attacked("sessions").figures
    assert int(figures["RESOURCE_EXHAUSTED"]) >= 3
    assert set(figures) <= {"peak MiB", "after MiB", "settled s", "RESOURCE_EXHAUSTED", "CANCELLED"}


def test_bodies_that_do_not_fit_are_refused() -> None:
    """Of twenty bodies of 30 MiB at most three are held; the others are told 503."""
    figures = attacked("bodies").figures
    assert int(figures["503"]) + int(figures.get("lost", 0)) >= 17
    assert int(figures.get("held", 0)) <= 3


def test_tensors_count_by_their_elements() -> None:
    """A million strings of seven bytes weigh 192 MB and more, so that none fits; 503, and not 413."""
    figures = attacked("strings").figures
    assert set(figures) <= {"peak MiB", "after MiB", "settled s", "503"}
