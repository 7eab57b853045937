"""`tests.attack.turns`: one request gives the loop back every few milliseconds, whatever pieces it is made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attack.runner import Victim, chosen, victim
from tests.attack.turns import ATTACKS, FUNCTIONS, longest
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(60)

FEW = (
    "riff-1000",
    "riff-10-loop",
    "riff-sink-1000-loop",
    "lines-1000-loop",
    "socket-100-loop",
    "parts-1000",
    "parts-10-loop",
    "parts-1000-loop",
    "events-10-loop",
    "events-100-loop",
    "connect-10-loop",
    "typed-1000-loop",
    "actions-1000-loop",
    "fragments-1000-loop",
)


@pytest.fixture(scope="module")
def target() -> Iterator[Victim]:
    """One victim for all: each attack is over before the next one begins."""
    with victim(FUNCTIONS) as made:
        longest(made)
        yield made


@pytest.mark.parametrize("name", chosen(ATTACKS, FEW))
def test_H164_one_request_of_many_pieces_gives_the_loop_back(name: str, target: Victim) -> None:
    """4 MB of numbers that take long to read; what other processes do meanwhile does not count."""
    figures = ATTACKS[name](target, 0.0)
    assert figures["status"] in (0, 200)
    assert int(figures["cpu"]) < 250
    assert int(figures["held"]) < 250 * SLOW
