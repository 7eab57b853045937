"""`ActionConfig`: configurations as a function sees them (E-088)."""

from __future__ import annotations

import pytest
from google.protobuf import any_pb2, duration_pb2, struct_pb2, wrappers_pb2
from google.rpc import status_pb2

from invoker.protocols.evergreen.configs import ActionConfig


def packed(message):
    made = any_pb2.Any()
    made.Pack(message)
    return ActionConfig(made)


def unreadable(name):
    return ActionConfig(any_pb2.Any(type_url=f"type.googleapis.com/{name}", value=b"\xff\xff"))


def test_E088_a_struct_is_what_it_stands_for():
    """Nested, with every kind of value."""
    struct = struct_pb2.Struct()
    value = {"temperature": 0.5, "stop": ["a", None, True], "nested": {"two_words": {}}}
    struct.update(value)
    assert packed(struct).to_dict() == value


def test_E088_a_known_message_is_unpacked_by_its_class():
    """Another class gets None."""
    config = packed(duration_pb2.Duration(seconds=3))
    assert config.unpack(duration_pb2.Duration) == duration_pb2.Duration(seconds=3)
    assert config.unpack(struct_pb2.Struct) is None
    assert config.type_name == "google.protobuf.Duration"


def test_E088_a_known_message_is_a_dict_with_the_names_of_its_fields():
    """Well-known types that are no objects in JSON stand under 'value'."""
    assert packed(status_pb2.Status(code=3, message="why")).to_dict() == {"code": 3, "message": "why"}
    assert packed(duration_pb2.Duration(seconds=3)).to_dict() == {"value": "3s"}
    assert packed(wrappers_pb2.StringValue(value="x")).to_dict() == {"value": "x"}


def test_E088_an_unknown_message_is_passed_as_it_came():
    """Nothing is rejected."""
    config = ActionConfig(any_pb2.Any(type_url="example.org/some.Thing", value=b"\x01\xff"))
    assert (config.type_url, config.type_name, config.value) == ("example.org/some.Thing", "some.Thing", b"\x01\xff")
    assert config.to_dict() is None
    assert config.unpack(duration_pb2.Duration) is None


@pytest.mark.parametrize("type_url", ["", "google.protobuf.Duration", "/google.protobuf.Duration", "x/y/z"])
def test_E088_the_type_is_what_stands_behind_the_last_slash(type_url):
    """With or without a host; an empty one names no type."""
    config = ActionConfig(any_pb2.Any(type_url=type_url, value=b""))
    assert (config.unpack(duration_pb2.Duration) is not None) is ("Duration" in type_url)
    assert (config.to_dict() is not None) is ("Duration" in type_url)


@pytest.mark.parametrize("name", ["google.protobuf.Struct", "google.protobuf.Duration"])
def test_E088_what_cannot_be_parsed_is_a_value_error(name):
    """Of whoever asks for it; the text says of which type."""
    with pytest.raises(ValueError, match=f"2 bytes are not a valid {name}"):
        unreadable(name).to_dict()


def test_E088_a_number_that_json_lacks_is_a_value_error():
    """A Struct may hold one on the wire."""
    struct = struct_pb2.Struct()
    struct.fields["x"].number_value = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        packed(struct).to_dict()


def test_its_text_shows_type_and_size():
    """Not the value, which may be private."""
    assert repr(packed(wrappers_pb2.StringValue(value="secret"))) == "Config('google.protobuf.StringValue', 8 bytes)"
