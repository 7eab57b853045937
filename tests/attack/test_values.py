"""`tests.attack.values`: values that cost more than their bytes hold nobody up, on any wire."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.attack.runner import Victim, chosen, probed, victim
from tests.attack.values import ATTACKS, FUNCTIONS
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(60)

FEW = (
    "any",
    "any-riff-loop",
    "floats-loop",
    "model",
    "array",
    "lines",
    "event",
    "form",
    "connect-many",
    "connect-deep",
    "ids",
    "ids-connect",
    "named",
    *(one for one in ATTACKS if one.startswith("pattern")),
)


@pytest.fixture(scope="module")
def target() -> Iterator[Victim]:
    """One victim for all: each attack is over before the next one begins."""
    with victim(FUNCTIONS) as made:
        yield made


@pytest.mark.parametrize("name", chosen(ATTACKS, FEW))
def test_livez_answers_while_dear_values_are_read(name: str, target: Victim) -> None:
    """Two clients send 4 MB each, over and over; nothing that they send is an error of ours."""
    before = len(target.process.log)
    account = probed(ATTACKS[name], target, 0.2)
    log = target.process.log[before:]
    assert account.failures == 0
    assert account.held_s < 0.25 * SLOW
    refused = name in ("connect-many", "connect-deep", "decimals", "named") or name.startswith(("ids", "pattern"))
    assert set(account.figures) <= ({"status 2", "status 400"} if refused else {"status 0", "status 200"}), account
    assert "Traceback" not in log, log


_CUT = "more characters)"


@pytest.mark.parametrize("name", [one for one in ATTACKS if one.startswith("texts")])
def test_texts_of_exceptions_that_callers_choose_are_cut(name: str, target: Victim) -> None:
    """In the answer, in the log, and on the way from an isolated child."""
    before = len(target.process.log)
    account = probed(ATTACKS[name], target, 0.2)
    (count,) = account.figures.values()
    until_s = time.monotonic() + 2 * SLOW
    while target.process.log[before:].count(_CUT) < int(count) and time.monotonic() < until_s:
        time.sleep(0.02)  # a line comes a moment after its response
    log = target.process.log[before:]
    assert account.held_s < 0.25 * SLOW
    assert "status 200" not in account.figures
    assert len(log) < 20_000 * (int(count) + 1)
    assert log.count(_CUT) == count
