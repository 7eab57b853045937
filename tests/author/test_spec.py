"""The types that describe a function."""

from __future__ import annotations

import dataclasses

import pytest

from invoker.author import spec


def test_specs_are_frozen() -> None:
    """They are shared by all invocations."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.FunctionSpec("f").name = "g"  # type: ignore[misc]


def test_ignored_says_its_name() -> None:
    """In messages and in inspect."""
    assert repr(spec.IGNORED) == "IGNORED"
