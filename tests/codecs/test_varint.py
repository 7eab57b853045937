"""Numbers as protobuf writes them: `invoker.codecs.varint`."""

from __future__ import annotations

from google.protobuf.wrappers_pb2 import UInt64Value
from hypothesis import example, given
from hypothesis import strategies as st

from invoker.codecs.varint import SHORT, VARINTS, varint


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
