"""`tests.attack.crowds`: however many clients stay, newcomers are heard."""

from __future__ import annotations

import sys

import pytest

from tests.attack.crowds import ATTACKS, FUNCTIONS
from tests.attack.runner import IS_LONG, MIB, chosen, probed, victim
from tests.conftest import SLOW

pytestmark = [
    pytest.mark.timeout(20),
    pytest.mark.skipif(sys.platform != "linux", reason="the limit of open files is Linux's"),
]


@pytest.mark.parametrize(
    "kind", chosen(ATTACKS, ("bodies", "h2 bodies", "fitting h2 bodies", "lines", "frames", "silent sockets"))
)
def test_H173_newcomers_are_heard(kind: str) -> None:
    """Twice as many clients as files: each `/livez` is answered, and each call is, or is told to try again."""
    answers = ("200",) if kind.endswith(("heads", "bodies")) else ("200", "503")  # no function runs yet
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[kind], target, 3.0 if IS_LONG else 1.0)
        assert (account.failures, account.figures["lost"]) == (0, 0), account
        assert account.held_s < 1.5 * SLOW, account
        assert account.figures["newcomer"] in answers, account
        assert account.rss_bytes < 200 * MIB, account
        assert "Traceback" not in target.process.log
