"""The types that describe a function."""

from __future__ import annotations

import dataclasses

import pytest

from invoker import shape, spec


def test_everything_is_importable_from_spec() -> None:
    """`invoker.spec` is where others look."""
    assert set(shape.__all__) <= set(spec.__all__)


def test_specs_are_frozen() -> None:
    """They are shared by all invocations."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        shape.FunctionSpec("f").name = "g"  # type: ignore[misc]


def test_ignored_says_its_name() -> None:
    """In messages and in inspect."""
    assert repr(shape.IGNORED) == "IGNORED"
