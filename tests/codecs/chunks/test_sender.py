"""Tests of `invoker.codecs.chunks.sender`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs.chunks import Ack, Data, End, Limits, Packed, Piece, Receiver, Sender, Start, Terms
from invoker.errors import Status, StatusError


def sending(terms: Terms, *messages: bytes, whole_bytes: int = 0) -> Sender:
    """A sender that was given messages."""
    sender = Sender(whole_bytes=whole_bytes)
    sender.terms = terms
    for message in messages:
        sender.put(message)
    return sender


def test_F022_every_chunk_but_the_last_has_exactly_the_size() -> None:
    """Start, Data from 0 on, End with their count."""
    assert list(sending(Terms(4, 9), b"abcdefghi").take()) == [
        Start(9, 0, 9),
        Data(0, b"abcd"),
        Data(1, b"efgh"),
        Data(2, b"i"),
        End(3),
    ]
    assert list(sending(Terms(4, 9), b"abcdefgh").take())[-2:] == [Data(1, b"efgh"), End(2)]


def test_F022_an_empty_message_is_one_empty_chunk_and_says_one_byte() -> None:
    """Zero would mean that the size is not told."""
    assert list(sending(Terms(4, 9), b"").take()) == [Start(0, 0, 1), Data(0, b""), End(1)]


def test_F023_the_start_tells_both_sizes() -> None:
    """That of the message, and that of what goes over the wire."""
    start, *pieces = sending(Terms(4, 999, 2), bytes(10_000)).take()
    assert isinstance(start, Start)
    blob = b"".join(piece.data for piece in pieces if isinstance(piece, Data))
    assert (start.size, start.level, start.blob) == (10_000, 2, len(blob))
    assert start.blob < 100


def test_F024_one_chunk_pending_is_the_hardest_case() -> None:
    """129 bytes by chunks of one byte, each after the ack of the one before."""
    sender = sending(Terms(1, 1), bytes(129))
    assert [type(piece) for piece in sender.take()] == [Start, Data]
    for index in range(128):
        sender.acked(index)
        assert list(sender.take()) == [Data(index + 1, b"\0")]
    assert list(sender.take()) == []
    sender.acked(128)
    assert list(sender.take()) == [End(129)]


def test_F030_an_ack_answers_the_oldest_chunk() -> None:
    """Another one, or one too many, is a violation."""
    sender = sending(Terms(1, 2), bytes(2))
    list(sender.take())
    for index, text in ((1, "the oldest one without an ack is 0"), (-1, "is 0")):
        with pytest.raises(StatusError, match=text) as caught:
            sender.acked(index)
        assert caught.value.status is Status.INVALID_ARGUMENT
    sender.acked(0)
    sender.acked(1)
    with pytest.raises(StatusError, match="does not belong to a chunk"):
        sender.acked(2)


def test_what_is_packed_goes_whole_where_chunks_are_off() -> None:
    """If it is not compressed."""
    sender = sending(Terms())
    sender.put(Packed.of(b"abc", 0))
    assert list(sender.take()) == [b"abc"]


@given(
    messages=st.lists(st.binary(max_size=200), max_size=4),
    terms=st.builds(Terms, st.integers(1, 70), st.integers(1, 4), st.integers(0, 3)),
    whole_bytes=st.sampled_from((0, 20)),
    data=st.data(),
)
def test_F024_messages_arrive_whatever_sizes_levels_and_credit(
    messages: list[bytes], terms: Terms, whole_bytes: int, data: st.DataObject
) -> None:
    """In order, never with more chunks unacked than agreed, whenever the acks come."""
    sender, receiver = sending(terms, *messages, whole_bytes=whole_bytes), Receiver(Limits())
    receiver.chunk_bytes = terms.chunk_bytes
    unacked: list[int] = []
    got: list[bytes] = []
    sent: list[Piece | bytes] = []
    while len(got) < len(messages):
        for piece in sender.take():
            assert len(unacked) < terms.max_pending
            sent.append(piece)
            if isinstance(piece, bytes):
                got.append(piece)
            elif isinstance(piece, Start):
                receiver.start(piece)
            elif isinstance(piece, Data):
                receiver.data(piece)
                unacked.append(piece.index)
            elif isinstance(piece, End):
                got.append(bytes(receiver.end(piece).unpack()))
        for _ in range(data.draw(st.integers(1, len(unacked))) if unacked else 0):
            sender.acked(Ack(unacked.pop(0)).index)
    assert got == messages
    assert sender.is_idle
    for one, following in pairwise(sent):
        assert not (isinstance(one, Data) and isinstance(following, Data)) or following.index == one.index + 1
