"""Chunks, made and read by hand."""

from __future__ import annotations

import re

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance import Failure
from invoker_conformance.federated.pieces import Reader, Terms, cut, data, end, start

BODY = bytes(range(256)) * 40


def read(reader: Reader, *messages: pb.ClientStreamMessage) -> bytes | None:
    whole = None
    for message in messages:
        whole = reader.take(message.chunked_transfer)
    return whole


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("body", [b"", b"x", BODY])
def test_what_is_cut_is_read(level: int, body: bytes) -> None:
    """At all levels, down to no bytes at all."""
    terms = Terms(100, 2, level)
    reader = Reader(terms)
    assert read(reader, *cut(body, terms)) == body
    assert not reader.is_inside


def test_an_old_client_tells_no_size_on_the_wire() -> None:
    """It is 0 then."""
    first = next(iter(cut(BODY, Terms(100, 2), is_told=False)))
    assert first.chunked_transfer.start.blob_size_bytes == 0
    assert first.chunked_transfer.start.uncompressed_size == len(BODY)


@pytest.mark.parametrize(
    ("pieces", "met"),
    [
        ((data(0, b"a"),), "data outside a message"),
        ((end(1),), "end outside"),
        ((start(2, 2), start(2, 2)), "a Start inside"),
        ((start(2, 2), data(1, b"ab")), "chunk 1"),
        ((start(6, 6), data(0, b"ab"), data(1, b"abcd")), "chunks of [2, 4] bytes"),
        ((start(6, 6), data(0, b"abcd"), data(1, b"ab"), data(2, b"ab")), "chunks of [2, 2] bytes"),
        ((start(2, 2), data(0, b"ab"), end(2)), "chunk_count=2"),
        ((start(2, 2), end(0)), "chunk_count=0"),
        ((start(2, 3), data(0, b"ab"), end(1)), "blob_size_bytes=3 of 2"),
        ((start(2, 0), data(0, b"ab"), end(1)), "blob_size_bytes=0 of 2"),
        ((start(3, 2), data(0, b"ab"), end(1)), "uncompressed_size=3 of 2"),
    ],
)
def test_what_a_target_cuts_wrong_is_told(pieces: tuple[pb.ClientStreamMessage, ...], met: str) -> None:
    """F-022, F-023, F-028: the order, the counts, the sizes."""
    with pytest.raises(Failure, match=re.escape(met)):
        read(Reader(Terms(4, 2)), *pieces)


def test_the_first_message_may_tell_the_sizes() -> None:
    """Then its chunks are of one size among themselves."""
    with pytest.raises(Failure, match="chunks of"):
        read(Reader(), start(5, 5), data(0, b"ab"), data(1, b"abc"))
    assert read(Reader(), start(3, 3), data(0, b"ab"), data(1, b"a"), end(2)) == b"aba"
