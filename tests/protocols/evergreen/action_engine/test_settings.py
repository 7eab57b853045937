"""`invoker.protocols.evergreen.action_engine.settings`: the defaults fit each other."""

from __future__ import annotations

import dataclasses

import pytest

from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings


def test_reading_pauses_long_before_a_session_ends() -> None:
    """A peer that feeds faster than functions take is slowed, not cut."""
    settings = ActionEngineSettings()
    assert settings.high_bytes * 8 <= settings.session_bytes
    assert settings.actions_running < settings.nodes


def test_settings_are_not_changed() -> None:
    """All sessions of a process share them."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        ActionEngineSettings().window = 1  # type: ignore[misc]
