"""The requirements of all protocols in one table."""

from __future__ import annotations

from invoker_conformance.catalogue import ALL, BY_PROTOCOL
from invoker_conformance.scenario import PROTOCOLS


def test_no_id_is_lost() -> None:
    """Every protocol has its rows, and the ids of none hide those of another."""
    assert tuple(BY_PROTOCOL) == PROTOCOLS
    assert len(ALL) == sum(map(len, BY_PROTOCOL.values()))
