"""One knob for all that other machines should reach only over TLS."""

from __future__ import annotations

from invoker.protocols.federated.service.attach import FederatedKnobs
from invoker.protocols.toolbridge.service.attach import ToolBridgeKnobs
from invoker.server.table import TABLE


def test_one_knob_speaks_for_all_protocols_that_have_it() -> None:
    """It is listed once, and read by each."""
    assert [one.name for one in TABLE.knobs].count("insecure_public") == 1
    config = TABLE.read({"INVOKER_INSECURE_PUBLIC": "true"})
    assert config.of(FederatedKnobs).insecure_public
    assert config.of(ToolBridgeKnobs).insecure_public
