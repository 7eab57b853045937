"""The tool bridge's row in the table of services."""

from __future__ import annotations

from invoker.services.table import TABLE
from invoker.services.toolbridge.service import ToolBridgeService


def test_it_is_served_on_the_grpc_port_when_chosen() -> None:
    """The table knows it by its name."""
    config = TABLE.read({"INVOKER_PROTOCOLS": "toolbridge"})
    assert TABLE.served(config) == (ToolBridgeService,)
