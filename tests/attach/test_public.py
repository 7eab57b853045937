"""One setting for all that other machines should reach only over TLS."""

from __future__ import annotations

from invoker.protocols.federated.settings import FederatedServiceSettings
from invoker.protocols.toolbridge.service.attach import ToolBridgeServiceSettings
from invoker.server.table import TABLE


def test_one_setting_speaks_for_all_protocols_that_have_it() -> None:
    """It is listed once, and read by each."""
    assert [one.name for one in TABLE.settings].count("insecure_public") == 1
    config = TABLE.read({"INVOKER_INSECURE_PUBLIC": "true"})
    assert config.of(FederatedServiceSettings).insecure_public
    assert config.of(ToolBridgeServiceSettings).insecure_public
