"""`invoker.transports.http.bodies`: where bodies end, however they are cut, and what is refused."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.transports.http.bodies import Chunks, Counted
from invoker.transports.http.heads import RefusedError

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def taken(*parts: bytes) -> tuple[bytes, bytes | None]:
    """The payload, and what is behind the body; None: it has not ended."""
    chunks, payload = Chunks(), b""
    rest = b""
    for part in parts:
        if chunks.is_over:
            rest += part
        else:
            payload += chunks.take(part)
    return payload, chunks.rest + rest if chunks.is_over else None


WHOLE = [
    (b"0\r\n\r\n", b""),
    (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
    (b"1\r\na\r\n00A\r\n0123456789\r\n000\r\n\r\n", b"a0123456789"),
    (b"3;x=y\r\nabc\r\n0;z\r\n\r\n", b"abc"),
    (b'3; x="y"\r\nabc\r\n0\r\n\r\n', b"abc"),
    (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n"),
    (b"1\r\na\r\n0\r\nX: y\r\nZ: \xe4\r\n\r\n", b"a"),
]
REFUSED = [
    b"3\r\nabcde0\r\n\r\n",  # two bytes where the end of the chunk should be
    b"\r\n", b"g\r\n", b"-1\r\n", b"+1\r\n", b"0x1\r\n", b" 1\r\n", b"1 \r\na\r\n", b"1_0\r\n", b"1\n", b"1\r\r\n",
    b"11111111111111111\r\n", b"1;\x00\r\n", b"1;a\nb\r\n", b"3\r\nabcd\r\n", b"3\r\nabc\n0\r\n\r\n",
    b"3\r\nabc0\r\n\r\n", b"3\r\nabc\r0\r\n\r\n", b"1;" + b"x" * 2000, b"1;" + b"x" * 2000 + b"\r\n",
    b"0\r\nX : y\r\n\r\n", b"0\r\n folded\r\n\r\n",
    b"1 ;x\r\n", b"0\r\n\n", b"0\r\nX\r\n\r\n", b"0\r\nX: " + b"y" * 20_000, b"0\r\nX: y\n\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize(("data", "payload"), WHOLE)
def test_a_body_ends_where_it_says(data: bytes, payload: bytes) -> None:
    """What is behind it belongs to the next request, however all of it is cut."""
    for behind in (b"", b"POST / HTTP/1.1\r\n"):
        stream = data + behind
        assert taken(stream) == (payload, behind)
        assert taken(*(stream[at : at + 1] for at in range(len(stream)))) == (payload, behind)
        for cut in range(1, len(stream)):
            assert taken(stream[:cut], stream[cut:]) == (payload, behind)


@pytest.mark.parametrize(("data", "payload"), WHOLE)
def test_a_body_that_is_cut_short_is_not_over(data: bytes, payload: bytes) -> None:
    """Whatever is missing."""
    for size in range(len(data)):
        assert taken(data[:size])[1] is None


@pytest.mark.parametrize("data", REFUSED)
def test_what_leaves_a_choice_is_refused(data: bytes) -> None:
    """Also byte by byte, or in a thousand pieces."""
    with pytest.raises(RefusedError):
        taken(data)
    size = max(1, len(data) // 1000)
    with pytest.raises(RefusedError):
        taken(*(data[at : at + size] for at in range(0, len(data), size)))


PIECES = st.sampled_from(
    [
        b"0",
        b"1",
        b"3",
        b"a",
        b"\r\n",
        b"\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b";x",
        b" ",
        b"abc",
        b"1\r\na\r\n",
        b"0\r\n\r\n",
        b"X: y\r\n",
    ]
)


@given(st.lists(PIECES, max_size=10).map(b"".join))
def test_nothing_is_taken_that_h11_refuses(data: bytes) -> None:
    """What both take is the same payload to both; h11 takes some more."""
    try:
        payload, behind = taken(data)
    except RefusedError:
        return
    other = h11.Connection(h11.SERVER)
    other.receive_data(HEAD + data)
    other.next_event()
    theirs = b""
    while isinstance(event := other.next_event(), h11.Data):
        theirs += event.data
    assert (theirs, isinstance(event, h11.EndOfMessage)) == (payload, behind is not None)
    if behind is not None:
        assert other.trailing_data[0] == behind


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_body_of_a_length_has_just_that(size: int) -> None:
    """However it is cut."""
    stream = b"abcdef"
    for cut in range(size + 1):
        body = Counted(size)
        assert body.is_over == (size == 0)
        payload = body.take(stream[:cut]) if cut else b""
        assert body.is_over == (cut == size)
        if cut < size or not size:
            payload += body.take(stream[cut:])
            assert body.rest == stream[size:]
        assert (payload, body.is_over) == (stream[:size], True)
