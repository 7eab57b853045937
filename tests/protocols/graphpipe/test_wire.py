"""What stands around the buffers of GraphPipe: `invoker.protocols.graphpipe.wire`."""

from __future__ import annotations

from invoker.protocols.graphpipe.wire import LENGTH, NAMED


def test_G016_a_length_is_four_bytes_of_which_the_lowest_comes_first() -> None:
    """Its highest bit is never that of a buffer, so it may announce a name."""
    assert LENGTH.pack(0x0102) == b"\x02\x01\x00\x00"
    assert LENGTH.pack(NAMED | 5) == b"\x05\x00\x00\x80"
