"""The defaults of the tool bridge."""

from __future__ import annotations

from invoker.protocols.toolbridge.settings import BridgeSettings


def test_the_defaults_are_those_of_the_catalogue() -> None:
    """Figures of its section 1.4."""
    settings = BridgeSettings()
    assert settings.message_bytes == 10_485_760
    assert (settings.ttl_s, settings.timeout_ms) == (3600.0, 30_000)
    assert not settings.auto_session
