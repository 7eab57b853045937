"""Settings: how those of several classes are read and listed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from invoker.errors import ConfigError
from invoker.protocols.evergreen.service.attach import EvergreenServiceSettings
from invoker.server.table import TABLE
from invoker.settings.setting import gathered, setting


def test_a_repeated_flag_adds_up_and_wins_over_the_variable():
    """Each may hold several, too."""
    env = {"INVOKER_TARGETS": "x", "INVOKER_ACTIONS": "A=m:f"}
    read = TABLE.read(env, {"targets": ["a,b", "c"]}).of(EvergreenServiceSettings)
    assert read.targets == ("a", "b", "c")
    assert read.actions == (("A", "m:f"),)
    with pytest.raises(ConfigError, match=r"--action is 'A'.*NAME=module:function"):
        TABLE.read({}, {"actions": ["A"]})


def test_settings_of_several_classes_are_one_list():
    """A setting stands where it says, else behind the one above it; one that two classes inherit stands once."""

    @dataclass
    class Process:
        a: int = setting(1, "A", int, "A.")
        b: int = setting(1, "B", int, "B.")
        no_setting: int = 0

    @dataclass
    class Shared:
        s: int = setting(1, "S", int, "S.", before="b")
        t: int = setting(1, "T", int, "T.")

    @dataclass
    class One(Shared):
        u: int = setting(1, "U", int, "U.", before="t")

    @dataclass
    class Two(Shared):
        v: int = setting(1, "V", int, "V.")

    @dataclass
    class Three:
        w: int = setting(1, "W", int, "W.")

    assert [one.name for one in gathered((Process, One, Two, Three))] == ["a", "s", "u", "t", "v", "b", "w"]

    @dataclass
    class Twice:
        a: int = setting(1, "A", int, "Another one.")

    with pytest.raises(AssertionError, match="two settings are named a"):
        gathered((Process, Twice))
