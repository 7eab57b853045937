"""The wire format of protobuf: numbers, sizes, fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs.anyvalue.wire import fields, read_varint, sized
from invoker.codecs.varint import varint


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_numbers_come_back(number: int, rest: bytes) -> None:
    """A number is read as it was written, and what follows it is left."""
    written = varint(number)
    assert read_varint(written + rest, 0) == (number, len(written))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 11])
def test_a_number_that_does_not_end(data: bytes) -> None:
    """It is an error that says so."""
    with pytest.raises(ValueError, match="cut off"):
        read_varint(data, 0)


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
