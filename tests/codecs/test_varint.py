"""Numbers as protobuf writes them: `invoker.codecs.varint`."""

from __future__ import annotations

import pytest
from google.protobuf.wrappers_pb2 import UInt64Value
from hypothesis import example, given
from hypothesis import strategies as st

from invoker.codecs.varint import SHORT, VARINTS, read_varint, varint


@given(st.integers(1, 2**64 - 1))
@example(SHORT - 1)
@example(SHORT)
@example(2**64 - 1)
def test_a_number_is_written_as_protobuf_writes_it(number: int) -> None:
    """Which has the tag of the field before it."""
    assert b"\x08" + varint(number) == UInt64Value(value=number).SerializeToString()


def test_short_numbers_are_one_byte() -> None:
    """They stand in a table, which writers may ask without a call."""
    assert len(VARINTS) == SHORT
    assert [varint(one) for one in range(SHORT)] == VARINTS == [bytes((one,)) for one in range(SHORT)]


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_numbers_come_back(number: int, rest: bytes) -> None:
    """A number is read as it was written, and what follows it is left."""
    written = varint(number)
    assert read_varint(written + rest, 0) == (number, len(written))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 10 + b"\x01"])
def test_a_number_that_does_not_end(data: bytes) -> None:
    """It is an error that says so."""
    with pytest.raises(ValueError, match="cut off"):
        read_varint(data, 0)


def test_bits_above_the_64th_are_dropped() -> None:
    """As protobuf drops them; a number of ten bytes has room for 70."""
    written = b"\xff" * 9 + b"\x7f"
    assert read_varint(written, 0) == (UInt64Value.FromString(b"\x08" + written).value, 10) == (2**64 - 1, 10)
