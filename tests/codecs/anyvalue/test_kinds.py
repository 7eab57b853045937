"""The kinds of values: the rest is in tests/protocols/toolbridge/test_variables.py (T-122)."""

from __future__ import annotations

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from invoker.codecs.anyvalue import pack
from invoker.codecs.anyvalue.kinds import kind_of
from tests.conftest import cpu_within


def test_a_kind_is_found_whatever_the_bytes_are():
    """What cannot be read is opaque."""
    assert kind_of(pack([1])) == "list"
    assert kind_of(b"") == "null"
    for data in (b"\xff", b"\x0a\xff", b"\x0a\x05abc/x", pack("x")[:-1]):
        assert kind_of(data) in ("opaque", "string")


def labelled(name: str, content: bytes) -> bytes:
    """An Any."""
    return AnyMessage(type_url=f"type.googleapis.com/{name}", value=content).SerializeToString()


@pytest.mark.parametrize("size", [1, 200_000])
@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("google.protobuf.Struct", b"\x0a\x06\x0a\x02kk\x12\x00", "map"),
        ("snakepit.map", b' \n{"a": [%b1]}', "map"),
        ("google.protobuf.StringValue", b"[%b1]", "list"),
        ("google.protobuf.Value", b'"%bx"', "string"),
        ("abc.Unknown", b"[%b1]", "opaque"),
        ("python.Thing", b"[%b1]", "opaque"),
    ],
)
def test_T122_the_kind_of_a_large_value_is_known_by_how_it_begins(name, content, kind, size):
    """Small ones are read to their end, and have the same kinds."""
    data = (
        content * size if b"%b" not in content else content % (b"1," * size if b'"%b' not in content else b"x" * size)
    )
    assert kind_of(labelled(name, data)) == kind


def test_T122_large_values_are_not_read_to_their_end():
    """A list of variables tells the kinds of all, on the loop."""
    lists = pack({"k": [[]] * 300_000})
    with cpu_within(0.1):
        assert kind_of(lists) == "map"
        assert kind_of(pack("x" * 5000)) == "string"
