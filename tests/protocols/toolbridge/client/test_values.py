"""Tests of values on the wire."""

from __future__ import annotations

import pytest
from google.protobuf.wrappers_pb2 import BoolValue

from invoker.errors import DecodeError
from invoker.protocols.toolbridge.client.values import packed, packed_each, read, read_struct, struct


def test_values_are_any() -> None:
    """A bool is none of the numbers."""
    sent = packed(True)
    got = BoolValue()
    assert sent.Unpack(got)
    assert got.value
    assert read(sent) is True
    assert {name: read(one) for name, one in packed_each({"a": 1, "b": None}).items()} == {"a": 1, "b": None}


def test_agents_take_a_struct() -> None:
    """What numbers of JSON cannot say goes through it, too."""
    values = {"a": 2**60, "b": b"x", "c": [1, {"d": None}], "e": 1}
    assert read_struct(struct(values)) == values


def test_what_cannot_be_read_is_an_error() -> None:
    """As with any codec."""
    sent = packed(1)
    sent.type_url = "type.googleapis.com/some.Thing"
    with pytest.raises(DecodeError):
        read(sent)
