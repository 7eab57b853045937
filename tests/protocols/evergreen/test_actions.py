"""`ActionServiceSettings`: what Evergreen and action-engine have in common."""

from __future__ import annotations

from invoker.protocols.evergreen.actions import ActionServiceSettings
from invoker.protocols.evergreen.service.action_engine import ActionEngineServiceSettings
from invoker.protocols.evergreen.service.attach import EvergreenServiceSettings
from invoker.server.table import TABLE


def test_both_protocols_have_the_same_values():
    """Said once, each knows them, and so does who wants no more than these."""
    config = TABLE.read({"INVOKER_SESSIONS": "7", "INVOKER_INPUTS": "a=x"})
    for kind in (ActionServiceSettings, EvergreenServiceSettings, ActionEngineServiceSettings):
        assert (config.of(kind).sessions, config.of(kind).inputs) == (7, (("a", "x"),))


def test_each_is_listed_once():
    """Above those that only one of the protocols has."""
    names = [one.name for one in TABLE.settings]
    assert [names.count(name) for name in ("actions", "inputs", "sessions", "session_bytes")] == [1, 1, 1, 1]
    assert names.index("sessions") < names.index("socket_path")
