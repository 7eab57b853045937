"""The wire format of protobuf: sizes, fields."""

from __future__ import annotations

import pytest

from invoker.codecs.anyvalue.wire import fields, sized


def test_fields_of_all_kinds() -> None:
    """Numbers, fixed sizes and bytes are told apart."""
    data = b"\x08\x96\x01" + b"\x12" + sized(b"x" * 200) + b"\x1d1234" + b"\x2112345678"
    assert list(fields(data)) == [(1, 0, 150), (2, 2, b"x" * 200), (3, 5, b"1234"), (4, 1, b"12345678")]


def test_T053_a_message_has_a_thousand_fields_at_most() -> None:
    """The last one wins, and five million of them take two seconds to pass."""
    assert len(list(fields(b"\x08\x01" * 1000))) == 1000
    with pytest.raises(ValueError, match="more than 1000 fields"):
        list(fields(b"\x08\x01" * 1001))


@pytest.mark.parametrize(
    ("data", "words"), [(b"\x0b", "wire type 3"), (b"\x02\x00", "without a number"), (b"\x0a\x05ab", "ends within")]
)
def test_what_is_no_message(data: bytes, words: str) -> None:
    """Groups, field 0 and a cut field are errors."""
    with pytest.raises(ValueError, match=words):
        list(fields(data))
