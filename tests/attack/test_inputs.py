"""`tests.attack.inputs`: what functions do not read is bounded all together, and goes with its clients."""

from __future__ import annotations

import pytest

from tests.attack.inputs import ATTACKS, SETTLED_MIB, serves
from tests.attack.runner import IS_LONG, MIB, Account, probed, victim

pytestmark = pytest.mark.timeout(60)

BUDGET = 64 * MIB
_ASLEEP = ("asleep", "aasleep")
MOST_MIB = 720
"""With the default settings; the budget is 512 MiB, and a row differs by 20 MiB from run to run."""

MORE_MIB = {"tool hold": 1400, "tool ahold": 1400}
"""A hundred and fifty messages of 10 MiB arrive in grpcio at once, which asks nobody."""

LATER_MIB = {"host": 300, **{f"{wire} {one}": 250 for wire in ("ndjson", "connect", "grpc-web") for one in _ASLEEP}}
"""What a host streams is not counted; the end of an upload may stand behind bytes that nobody takes."""


@pytest.mark.parametrize("name", ["action-engine adeaf", "tool ahold", "host"])
def test_T063_R129_inputs_that_nobody_reads_are_bounded_all_together(name: str) -> None:
    """Of twelve clients with 15 MiB each, or messages of 10 MiB; what functions work on counts, too."""
    with serves() as args, victim(*args, env={"INVOKER_MEMORY_BYTES": str(BUDGET)}) as target:
        account = probed(ATTACKS[name], target, 1)
    assert int(account.figures["still MiB"]) < 70 + 1.125 * BUDGET // MIB + 12 * 5, account.figures
    _check(account, LATER_MIB.get(name, SETTLED_MIB))


@pytest.mark.skipif(not IS_LONG, reason="it takes many minutes")
@pytest.mark.parametrize("name", list(ATTACKS))
def test_inputs_that_nobody_reads_stay_within_the_promise(name: str) -> None:
    """A gigabyte and a half on each wire, with the default settings."""
    with serves() as args, victim(*args) as target:
        account = probed(ATTACKS[name], target, 5)
    assert int(account.figures["peak MiB"]) <= MORE_MIB.get(name, MOST_MIB), account.figures
    _check(account, LATER_MIB.get(name, SETTLED_MIB))


def _check(account: Account, most_mib: int) -> None:
    assert account.failures == 0
    assert int(account.figures["after MiB"]) <= most_mib, account.figures
