"""`EvergreenSettings`: the defaults of 0.2."""

from __future__ import annotations

import dataclasses

import pytest

from invoker.protocols.evergreen.settings import EXTENSIONS, METADATA_MODES, EvergreenSettings


def test_E115_the_defaults_are_those_of_the_catalogue():
    """Table 0.2, in bytes and counts."""
    settings = EvergreenSettings()
    assert (settings.session_bytes, settings.reference_bytes, settings.fragment_bytes) == (2**28, 2**25, 2**20)
    assert (settings.nodes, settings.depth, settings.leaves, settings.name_bytes) == (100_000, 64, 1_000_000, 1024)
    assert (settings.actions_running, settings.actions_waiting) == (64, 1024)


def test_E036_metadata_are_strict_unless_the_operator_says_otherwise():
    """The first of the modes."""
    assert EvergreenSettings().metadata == METADATA_MODES[0] == "strict"
    assert METADATA_MODES == ("strict", "identical", "ignore")


def test_E118_the_extensions_are_those_of_the_catalogue():
    """In the order in which they are told."""
    assert EXTENSIONS == ("drop", "ttl", "partial-failures", "cancel", "accept", "discovery")


def test_settings_do_not_change():
    """One value serves every session."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        EvergreenSettings().depth = 1
