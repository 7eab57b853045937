"""The tool bridge served by two workers, whichever of them a connection meets."""

from __future__ import annotations

import time

from invoker.client import SyncToolBridge
from invoker.client.toolbridge import Histogram
from tests.conftest import SLOW
from tests.serving import serving

CONNECTIONS = 12


def test_T155_metrics_are_those_of_all_workers() -> None:
    """Each of twelve connections is told all calls of the twelve, with the histogram, and what runs in any worker."""
    with serving("tests.sync_toolbridge", "--workers", "2") as served:
        for number in range(CONNECTIONS):
            with SyncToolBridge(served.grpc) as bridge, bridge.session(f"s{number}") as session:
                session.call("add", number)
        with (
            SyncToolBridge(served.grpc) as bridge,
            bridge.session("s") as session,
            session.stream("endless") as numbers,
        ):
            next(numbers)
            wanted = [(CONNECTIONS, CONNECTIONS, CONNECTIONS + 1, 1)] * CONNECTIONS
            until = time.monotonic() + 10 * SLOW  # a worker tells the others twice a second
            while (told := [metrics(served.grpc) for _ in wanted]) != wanted and time.monotonic() < until:
                pass
            assert told == wanted


def metrics(address: str) -> tuple[object, ...]:
    """Calls of `add`, twice, sessions, and how many of `endless` run; by a new connection."""
    with SyncToolBridge(address) as bridge:
        found = bridge.metrics()
    add, endless = (next(name for name in found if name.endswith(end)) for end in (":add.calls", ":endless.active"))
    took = found[add.replace(".calls", ".duration_ms")]
    assert isinstance(took, Histogram)
    return found[add], took.count, found["sessions.created"], found[endless]
