"""`tests.attack.unread`: what clients do not read counts as memory that is held, and goes back when they leave."""

from __future__ import annotations

import pytest

from tests.attack.runner import MIB, chosen, probed, victim
from tests.attack.unread import ARGS, ATTACKS, SETTLED_MIB

pytestmark = pytest.mark.timeout(60)

FEW = ("riff gives", "graphpipe tcp")
BUDGET = 128 * MIB


@pytest.mark.parametrize("name", chosen(ATTACKS, FEW))
def test_unread_responses_are_bounded_all_together(name: str) -> None:
    """Of 900 MB, of which grpcio makes copies, 128 MiB are held; calls beyond that end."""
    with victim(*ARGS, env={"INVOKER_MEMORY_BYTES": str(BUDGET)}) as target:
        account = probed(ATTACKS[name], target, 1)
    assert account.failures == 0
    assert int(account.figures["still MiB"]) < 400, account.figures
    assert int(account.figures["after MiB"]) <= SETTLED_MIB, account.figures


def test_unread_responses_on_grpc_aio_are_refused_beyond_the_budget() -> None:
    """It ends no call whose response it has taken, so those that do not fit are not given to it."""
    with victim(*ARGS, "--grpc-driver", "aio", env={"INVOKER_MEMORY_BYTES": str(BUDGET)}) as target:
        account = probed(ATTACKS["riff agive"], target, 1)
    assert account.failures == 0
    assert int(account.figures["RESOURCE_EXHAUSTED"]) >= 90, account.figures
    assert int(account.figures["still MiB"]) < 400, account.figures
    assert int(account.figures["after MiB"]) <= SETTLED_MIB, account.figures
