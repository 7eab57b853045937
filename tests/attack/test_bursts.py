"""`tests.attack.bursts`, smaller: every call gets an answer of ours."""

from __future__ import annotations

import pytest

from tests.attack.bursts import burst, resets
from tests.attack.runner import probed, victim

pytestmark = pytest.mark.timeout(30)

OK, RESOURCE_EXHAUSTED, REFUSED_STREAM = "status 0", "status 8", "status reset 7"


@pytest.mark.parametrize("driver", ["fast", "aio"])
def test_R132_a_burst_of_calls_is_served(driver: str) -> None:
    """2,500 calls that begin at once on ten connections: grpcio refuses none, which clients would take for a cancel."""
    with victim(env={"INVOKER_GRPC_DRIVER": driver, "INVOKER_THREADS": "3000"}) as target:
        assert burst(2500, target, 1) == {OK: 2500}


@pytest.mark.parametrize("driver", ["fast", "aio"])
def test_R132_a_burst_beyond_our_limits_is_refused_by_us(driver: str) -> None:
    """RESOURCE_EXHAUSTED, and no other refusal."""
    env = {"INVOKER_GRPC_DRIVER": driver, "INVOKER_THREADS": "2", "INVOKER_MAX_INVOCATIONS": "2"}
    with victim("tests.attack.functions:held", env=env) as target:  # however slowly the calls come, some meet two
        figures = burst(1500, target, 1)
    assert figures[RESOURCE_EXHAUSTED], figures
    assert sum(int(count) for count in figures.values()) == 1500
    assert set(figures) <= {OK, RESOURCE_EXHAUSTED}


def test_streams_that_are_reset_at_once_leave_the_server_well() -> None:
    """Each connection is served afterwards, and `/livez` meanwhile."""
    with victim() as target:
        account = probed(resets, target, 1)
    assert (account.figures, account.failures) == ({OK: 2}, 0), account


def test_a_connection_has_no_more_calls_than_it_may() -> None:
    """A client that resets faster than it may begin is refused by HTTP/2 itself."""
    with victim(env={"INVOKER_MAX_STREAMS": "10"}) as target:
        account = probed(resets, target, 1)
    assert set(account.figures) <= {OK, REFUSED_STREAM, "cut"}, account
    assert account.failures == 0, account
