"""`tests.attack.decodes`: bodies of empty arrays are refused, and nobody waits for them."""

from __future__ import annotations

import pytest

from tests.attack.decodes import ATTACKS, FUNCTIONS
from tests.attack.runner import probed, victim
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(30)


@pytest.mark.parametrize(
    "name", ["json-http", "msgpack-http", "json-grpc", "msgpack-grpc", "json-loop", "msgpack-loop"]
)
def test_livez_answers_while_sixteen_bodies_of_empty_arrays_are_sent(name: str) -> None:
    """All are refused as bad input, none is decoded, and the process answers within a quarter of a second."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS[name], target, 0.2)
    assert account.failures == 0
    assert account.held_s < 0.25 * SLOW
    statuses = {"status 2"} if "grpc" in name or name == "msgpack-loop" else {"status 400", "status 500"}
    assert set(account.figures) <= statuses


def test_sixteen_bodies_at_the_cap_are_decoded() -> None:
    """Each is a function's, and nobody waits long for that either."""
    with victim(FUNCTIONS) as target:
        account = probed(ATTACKS["many-http"], target, 0.2)
    assert account.failures == 0
    assert account.held_s < 0.5 * SLOW
    assert set(account.figures) == {"status 200"}
