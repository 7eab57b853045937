"""Messages cut into their fields."""

from __future__ import annotations

import contextlib

import pytest
from google.protobuf import descriptor_pb2, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from invoker.protocols.typed.split import bytes_field, elements, entries, split
from tests.conftest import cpu_within


def test_H106_each_field_is_a_message_of_its_own():
    """Parts behind each other are the message again; a field that comes twice is one part."""
    message = descriptor_pb2.FieldDescriptorProto(name="a", number=300, label=1, default_value="x" * 200)
    frame = message.SerializeToString()
    parts = split(frame)
    assert set(parts) == {1, 3, 4, 7}
    assert descriptor_pb2.FieldDescriptorProto.FromString(parts[3]).number == 300
    assert descriptor_pb2.FieldDescriptorProto.FromString(b"".join(parts.values())) == message
    assert split(parts[3] + parts[1] + parts[3])[3] == parts[3] * 2
    assert split(b"") == {}


@pytest.mark.parametrize("frame", [b"\x0a\x01a", b"\x0a\x01a\x12\x01b"])
def test_many_fields_take_time_in_proportion(frame):
    """Each was put behind a copy of all those before it: a megabyte took minutes."""
    with cpu_within(3):
        parts = split(frame * 300_000)
    assert [len(part) for part in parts.values()] == [900_000] * (len(frame) // 3)


def test_no_more_elements_are_cut_than_asked_for():
    """In both forms; without a bound all are."""
    assert elements(b"\x08\x01\x08\x02\x08\x03", "varint", 2) == [b"\x08\x01", b"\x08\x02"]
    assert elements(b"\x0a\x03\x01\x02\x03", "varint", 2) == [b"\x08\x01", b"\x08\x02"]
    assert len(elements(b"\x0a\x03\x01\x02\x03", "varint")) == 3


def test_fields_of_fixed_size_are_cut():
    """Eight bytes of a double; four of a float."""
    value = struct_pb2.Value(number_value=1.5).SerializeToString()
    assert split(value + b"\x1d1234") == {2: value, 3: b"\x1d1234"}


@pytest.mark.parametrize(
    "frame",
    [
        b"\x00\x01",  # a field with the number 0
        b"\x08",  # no number
        b"\x08\xff",  # one that is cut off
        b"\x08" + b"\xff" * 10 + b"\x01",  # one that is too long
        b"\x0a\x02a",  # too few bytes
        b"\x09\x00\x00",  # too few for a double
        b"\x0b\x0c",  # a group
        b"\x0f",  # a wire type that is none
    ],
)
def test_H108_what_is_no_message_is_refused(frame):
    """Nothing but ValueError is raised."""
    with pytest.raises(ValueError, match=r"field|number"):
        split(frame)


@given(st.binary(max_size=60), st.sampled_from(["", "varint", "fixed64"]))
def test_H108_any_bytes_are_parts_or_refused(frame, packing):
    """Nothing is lost."""
    with contextlib.suppress(ValueError):
        parts = split(frame)
        assert sorted(b"".join(parts.values())) == sorted(frame)
        for part in parts.values():
            elements(part, packing)


def test_elements_that_are_packed_are_cut():
    """Numbers as parsers and writers may send them, packed or not."""
    packed, each = b"\x12\x04\x01\xac\x02\x03", b"\x10\x07"
    assert elements(packed + each, "varint") == [b"\x10\x01", b"\x10\xac\x02", b"\x10\x03", each]
    assert elements(b"\x12\x10" + b"12345678" * 2, "fixed64") == [b"\x1112345678"] * 2
    assert elements(b"\x12\x01a\x12\x00", "") == [b"\x12\x01a", b"\x12\x00"]


@pytest.mark.parametrize(("part", "packing"), [(b"\x12\x01\xff", "varint"), (b"\x12\x07" + b"1" * 7, "fixed64")])
def test_H108_elements_that_are_cut_off_are_refused(part, packing):
    """The message says more than it has."""
    with pytest.raises(ValueError, match=r"ends within|cut off"):
        elements(part, packing)


def test_a_field_of_bytes_is_written_as_protobuf_does():
    """Its length may take several bytes."""
    for text in ("", "a", "x" * 300):
        made = descriptor_pb2.FieldDescriptorProto.FromString(bytes_field(1, text.encode()))
        assert made.name == text


def test_H211_entries_of_a_map_are_cut_by_their_keys():
    """Each is a message of its own; a key that is missing is empty, and of equal ones the last entry counts."""
    value = struct_pb2.Struct(fields={"a": {"number_value": 1}, "\u00fc" * 100: {"bool_value": True}})
    found = entries(value.SerializeToString())
    assert found.keys() == {"a", "\u00fc" * 100}
    assert struct_pb2.Struct.FromString(found["a"]) == struct_pb2.Struct(fields={"a": {"number_value": 1}})
    nameless = b"\x0a\x02\x12\x00"
    assert entries(nameless) == {"": nameless}
    twice = entries(found["a"] + b"\x0a\x05\x0a\x01a\x12\x00")
    assert twice == {"a": b"\x0a\x05\x0a\x01a\x12\x00"}
    for wrong in (b"\x0a\x03\x0a\x01\xff", b"\x0a\x01\x0a", b"\x0a\x09\x0a"):
        with pytest.raises(ValueError, match=r"."):
            entries(wrong)
