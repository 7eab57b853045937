"""Tests of `invoker.codecs.chunks.receiver`."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs.chunks import Data, End, Limits, Receiver, Start
from invoker.errors import InvocationError, LimitExceeded, Status, StatusError


def taking(chunk_bytes: int = 2**20, **limits: int) -> Receiver:
    """A receiver of chunks up to that size."""
    receiver = Receiver(Limits(**limits))
    receiver.chunk_bytes = chunk_bytes
    return receiver


def received(start: Start, *chunks: bytes, count: int | None = None, **limits: int) -> bytes:
    """Receive one message."""
    receiver = taking(**limits)
    receiver.start(start)
    for index, chunk in enumerate(chunks):
        receiver.data(Data(index, chunk))
    return bytes(receiver.end(End(len(chunks) if count is None else count)).unpack())


def test_F033_zlib_and_gzip_are_told_apart_by_themselves() -> None:
    """The level says only whether something is compressed."""
    for level in (1, 2, 3):
        for blob in (zlib.compress(b"abc" * 9, level), gzip.compress(b"abc" * 9)):
            assert received(Start(27, level, len(blob)), blob[:5], blob[5:]) == b"abc" * 9


def test_F032_a_size_on_the_wire_of_zero_is_unknown() -> None:
    """Then that of the message counts, for what is not compressed."""
    assert received(Start(4, 0, 0), b"ab", b"cd") == b"abcd"
    blob = zlib.compress(b"abcd")
    assert received(Start(4, 1, 0), blob) == b"abcd"
    violation(Start(4, 0, 0), b"abc")
    violation(Start(4, 0, 0), b"abcde")


def test_F032_an_empty_message_says_that_it_has_one_byte() -> None:
    """As real clients send it; a message of one byte may not lack it."""
    assert received(Start(0, 0, 1), b"") == b""
    assert received(Start(0, 1, 1), b"") == b""
    violation(Start(1, 0, 1), b"")
    violation(Start(0, 0, 2), b"")
    violation(Start(0, 1, 1), zlib.compress(b"")[:1], text="cut off")


@pytest.mark.parametrize(
    ("start", "chunks", "text"),
    [
        (Start(-1, 0, 1), [], "must not be negative"),
        (Start(1, 0, -1), [], "must not be negative"),
        (Start(4, 4, 4), [], "not a compression level"),
        (Start(4, -1, 4), [], "not a compression level"),
        (Start(4, 0, 5), [], "uncompressed message of 4 bytes cannot have 5"),
        (Start(4, 0, 4), [b"abcde"], "announced with 4 bytes"),
        (Start(4, 0, 4), [b"abc"], "after 3 of 4 bytes"),
        (Start(4, 1, 12), [zlib.compress(b"abcde")], "announced with 12 bytes|more than the 4 bytes"),
        (Start(9, 1, 13), [zlib.compress(b"abcde")], "5 bytes, and 9 were announced"),
        (Start(5, 1, 12), [zlib.compress(b"abcde")[:-1]], "cut off"),
        (Start(5, 1, 14), [zlib.compress(b"abcde"), b"x"], "follow the end"),
        (Start(5, 1, 14), [zlib.compress(b"abcde") + b"x"], "follow the end"),
        (Start(5, 1, 5), [b"hello"], "cannot be decompressed"),
    ],
)
def test_F035_what_cannot_be_is_a_violation(start: Start, chunks: list[bytes], text: str) -> None:
    """Negative sizes, trailing bytes, truncated or broken compression, sizes that differ."""
    violation(start, *chunks, text=text)


def test_F028_pieces_come_in_order() -> None:
    """Each in its turn, and none outside a message."""
    violation(Start(4, 0, 4), b"abcd", count=2, text="ends after 2 chunks")
    violation(Start(0, 0, 0), count=0, text="ends after 0 chunks")
    receiver = taking()
    for break_it in (
        lambda: receiver.data(Data(0, b"")),
        lambda: receiver.end(End(1)),
        lambda: (receiver.start(Start(4, 0, 4)), receiver.data(Data(1, b"ab"))),
        lambda: receiver.start(Start(4, 0, 4)),
    ):
        with pytest.raises(StatusError) as caught:
            break_it()
        assert caught.value.status is Status.INVALID_ARGUMENT


def test_F035_chunks_have_a_most_size_and_a_most_number() -> None:
    """Both are violations, one byte or one chunk above."""
    receiver = taking(4, chunks=2)
    receiver.start(Start(20, 0, 20))
    receiver.data(Data(0, b"1234"))
    with pytest.raises(StatusError, match="has 5 bytes and exceeds the limit of 4 bytes"):
        receiver.data(Data(1, b"12345"))
    receiver.data(Data(1, b""))
    with pytest.raises(StatusError, match="more than 2 chunks"):
        receiver.data(Data(2, b""))


def test_F034_a_size_above_the_limit_is_refused_at_the_start() -> None:
    """Either of the two; and what is not told is counted as it comes."""
    for start in (Start(101, 0, 0), Start(1, 1, 101), Start(2**31 - 1, 0, 2**31 - 1)):
        with pytest.raises(LimitExceeded):
            taking(message_bytes=100).start(start)
    receiver = taking(message_bytes=100)
    receiver.start(Start(100, 1, 0))
    with pytest.raises(LimitExceeded):
        receiver.data(Data(0, zlib.compress(b"", 0) * 20))
    receiver = taking(message_bytes=100)
    receiver.start(Start(100, 0, 0))
    with pytest.raises(LimitExceeded):
        receiver.data(Data(0, bytes(101)))


def bomb() -> bytes:
    """10 MiB that are 10 GiB inflated, which is as much as deflate can do; a flushed block can be repeated."""
    packer = zlib.compressobj(9)
    header = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)
    blob = header + block * (10 * 2**20 // len(block))
    assert len(blob) // len(block) * 2**24 >= 2**33
    return blob


def give(receiver: Receiver, blob: bytes) -> None:
    """Bring it in chunks."""
    for index in range(-(-len(blob) // 8192)):
        receiver.data(Data(index, blob[index * 8192 : (index + 1) * 8192]))


@pytest.mark.parametrize("said", [1000, 8 * 2**20])
def test_F034_a_bomb_takes_no_more_memory_than_it_said(said: int) -> None:
    """Beside its bytes on the wire; one that says a small size stops there, and so does one that says a large one."""
    blob = bomb()
    receiver = taking(message_bytes=16 * 2**20)
    tracemalloc.start()
    try:
        receiver.start(Start(said, 1, len(blob)))
        give(receiver, blob)
        whole = receiver.end(End(-(-len(blob) // 8192)))
        with pytest.raises(StatusError, match="more than the"):
            whole.unpack()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < said * 2 + 1.5 * len(blob)


PIECES = st.one_of(
    st.builds(Start, st.integers(-2, 60), st.integers(-1, 5), st.integers(-2, 60)),
    st.builds(Data, st.integers(-1, 3), st.binary(max_size=20)),
    st.builds(Data, st.integers(0, 1), st.binary(max_size=9).map(zlib.compress)),
    st.builds(End, st.integers(-1, 4)),
)


@given(st.lists(PIECES, max_size=12))
def test_F028_any_pieces_give_a_message_or_an_error_of_ours(pieces: list[Start | Data | End]) -> None:
    """Nothing else ever leaves it."""
    receiver = taking(16, message_bytes=50, chunks=3)
    take = {Start: receiver.start, Data: receiver.data, End: receiver.end}
    for piece in pieces:
        try:
            take[type(piece)](piece)  # type: ignore[operator]
        except InvocationError:
            return


def violation(start: Start, *chunks: bytes, count: int | None = None, text: str = "message") -> None:
    """Receiving it is INVALID_ARGUMENT."""
    with pytest.raises(StatusError, match=text) as caught:
        received(start, *chunks, count=count)
    assert caught.value.status is Status.INVALID_ARGUMENT
