"""Direct conversations with a time limit: a frame that is wrong, and what the function sends by its context."""

from __future__ import annotations

from collections.abc import Iterator

from invoker import Context
from invoker.author.decorator import function
from invoker.errors import ProtocolViolation
from tests.execution.wires import Call, direct_driver


@function(timeout_s=3600)
def doubled(xs: Iterator[int], context: Context) -> Iterator[int]:
    """Gives each value by its result, and once more by its context."""
    for x in xs:
        context.outputs[0].send(x)
        yield x


def test_values_go_both_ways_as_without_a_limit():
    """Until the end of the input."""
    call = Call(direct_driver(doubled)).start().data(b"1").data(b"2").half_close()
    assert call.end() is None
    assert call.payloads() == [b"1", b"1", b"2", b"2"]


def test_a_frame_that_breaks_the_protocol_ends_the_call():
    """Its function sees that, too."""
    call = Call(direct_driver(doubled)).start().data(b"1")
    assert call.outputs(2) == [b"1", b"1"]
    call.raw(b"\xff\xff")
    assert isinstance(call.end(), ProtocolViolation)


def test_a_peer_that_leaves_ends_the_call():
    """The read fails."""
    call = Call(direct_driver(doubled)).start().data(b"1")
    call.outputs(2)
    call.cancel()
    assert "the peer cancelled" in str(call.end())
