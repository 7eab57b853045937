"""Values in the suite's own hands."""

from __future__ import annotations

from typing import Any

import pytest

from invoker_conformance import Failure
from invoker_conformance.toolbridge.values import kind_of, pack, packed, same, shown, value_in


@pytest.mark.parametrize(
    "value", [None, True, 0, -(2**63), 1.5, float("nan"), "é", b"\0", [1, [None, True]], {"a": {"b": 1.5}}]
)
def test_values_come_back(value: Any) -> None:
    """With their types."""
    assert same(value_in(pack(value)), value)


def test_what_is_not_the_same() -> None:
    """Equal numbers of different types are not, nor zeros of different signs."""
    assert not same(1, True)
    assert not same([1], [1.0])
    assert not same(0.0, -0.0)
    assert same({"a": [float("nan")]}, {"a": [float("nan")]})


def test_forms_that_no_catalogue_has() -> None:
    """They are a failure of the target."""
    for sent in (packed("some.Thing", b""), packed("google.protobuf.Int64Value", b"\xff")):
        with pytest.raises(Failure):
            value_in(sent)
    assert kind_of(packed("some.Thing", b"")) == "some.Thing"
    assert len(shown(packed("a", bytes(1000)))) < 200
