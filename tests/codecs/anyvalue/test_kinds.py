"""The kinds of values: the rest is in tests/protocols/toolbridge/test_variables.py (T-122)."""

from __future__ import annotations

from invoker.codecs.anyvalue import pack
from invoker.codecs.anyvalue.kinds import kind_of


def test_a_kind_is_found_whatever_the_bytes_are():
    """What cannot be read is opaque."""
    assert kind_of(pack([1])) == "list"
    assert kind_of(b"") == "null"
    for data in (b"\xff", b"\x0a\xff", b"\x0a\x05abc/x", pack("x")[:-1]):
        assert kind_of(data) in ("opaque", "string")
