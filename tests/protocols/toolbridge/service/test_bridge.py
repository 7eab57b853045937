"""What the rpcs of the tool bridge share."""

from __future__ import annotations

from invoker.protocols.toolbridge.service.bridge import Bridge
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.attach.around import around


def test_the_host_sessions_has_its_keeper_and_the_settings():
    """Both are those of this process."""
    surroundings = around()
    bridge = Bridge(surroundings, BridgeSettings(ttl_s=5.0))
    assert bridge.host_sessions.keeper is bridge.keeper
    assert bridge.host_sessions.settings.ttl_s == 5.0
    assert bridge.driver is surroundings.driver
