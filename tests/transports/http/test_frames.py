"""`invoker.transports.http.frames`: what is a frame, what is none, and that wsproto thinks the same."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage

from invoker.core.http import LongMessage
from invoker.transports.http.frames import (
    CLOSE,
    FRAGMENT,
    PING,
    PONG,
    Control,
    FrameError,
    FrameReader,
    closing,
    control,
    fragments,
    framed,
)

MASK = b"\x37\xfa\x21\x3d"
MOST = 100_000


def frame(first: int, payload: bytes = b"", *, mask: bytes | None = MASK, wide: int = 0) -> bytes:
    """A frame of a client; ``wide`` says by how many bytes its length is told, 0: by the fewest."""
    size = len(payload)
    wide = wide or (1 if size < 126 else 2 if size <= 0xFFFF else 8)
    told = {1: bytes([size & 0x7F]), 2: b"\x7e" + (size & 0xFFFF).to_bytes(2), 8: b"\x7f" + size.to_bytes(8)}[wide]
    if mask is None:
        return bytes([first]) + told + payload
    key = mask * (size // 4 + 1)
    masked = bytes(one ^ other for one, other in zip(payload, key, strict=False))
    return bytes([first, told[0] | 0x80]) + told[1:] + mask + masked


def read(*pieces: bytes, most_bytes: int = MOST) -> list[str | bytes | Control]:
    """What comes of bytes that come in pieces."""
    reader = FrameReader(most_bytes)
    found = []
    for piece in pieces:
        reader.feed(piece)
        while (one := reader.next()) is not None:
            found.append(one)
    return [one for one in found if one is not FRAGMENT]


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Data in pieces."""
    ends = sorted({min(one, len(data)) for one in places} | {0, len(data)})
    return [data[begin:end] for begin, end in itertools.pairwise(ends)]


@pytest.mark.parametrize("has_numpy", [False, True])
@pytest.mark.parametrize("size", [0, 1, 3, 4, 125, 126, 127, 511, 512, 513, 514, 515, 1000, 0xFFFF, 0x10000, 99_999])
def test_messages_of_every_size_are_read_and_written(
    size: int, has_numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unmasked, whatever way their length is told, with numpy and without; wsproto reads what is written."""
    monkeypatch.setitem(sys.modules, "numpy", np if has_numpy else None)
    payload = random.Random(size).randbytes(size)
    assert read(frame(0x82, payload)) == [payload]
    text = "é" * (size // 2)
    assert read(frame(0x81, text.encode())) == [text]
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(framed(payload) + framed(text))
    events = list(client.events())
    kinds = [one for one in events if isinstance(one, BytesMessage | TextMessage)]
    assert b"".join(bytes(one.data) for one in kinds if isinstance(one, BytesMessage)) == payload
    assert "".join(one.data for one in kinds if isinstance(one, TextMessage)) == text


def test_H041_fragments_make_one_message_and_control_frames_come_between() -> None:
    """A text may be cut within a letter; its control frames are given at once."""
    letter = "ü".encode()
    stream = [
        *(frame(0x01, b"a" + letter[:1]), frame(0x89, b"there?"), frame(0x00), frame(0x00, letter[1:])),
        *(frame(0x8A, b"old"), frame(0x80, b"b"), frame(0x02, b"\x00"), frame(0x80, b"\xff")),
    ]
    assert read(*stream) == [Control(PING, b"there?"), Control(PONG, b"old"), "aüb", b"\x00\xff"]


def test_a_close_frame_has_a_code_and_a_reason_or_neither() -> None:
    """In both directions."""
    assert read(frame(0x88)) == [Control(CLOSE)]
    assert read(frame(0x88, b"\x03\xe8bye")) == [Control(CLOSE, b"bye", 1000)]
    assert closing(0) == b"\x88\x00"
    assert closing(1000, "bye") == b"\x88\x05\x03\xe8bye"
    long = closing(1011, "x" * 122 + "ü")
    assert (len(long), long[4:]) == (2 + 2 + 122, b"x" * 122)
    assert closing(1011, "\ud800")[4:] == b"\\ud800"
    assert control(PONG, b"here") == b"\x8a\x04here"


@pytest.mark.parametrize(
    ("stream", "code", "why"),
    [
        (frame(0x81, b"a", mask=None), 1002, "no mask"),
        (frame(0xC1, b"a"), 1002, "reserved"),
        (frame(0xA1, b"a"), 1002, "reserved"),
        (frame(0x91, b"a"), 1002, "reserved"),
        (frame(0x83), 1002, "opcode 3"),
        (frame(0x87), 1002, "opcode 7"),
        (frame(0x8B), 1002, "opcode 11"),
        (frame(0x8F), 1002, "opcode 15"),
        (frame(0x80, b"a"), 1002, "without a message"),
        (frame(0x00, b"a"), 1002, "without a message"),
        (frame(0x01, b"a") + frame(0x81, b"a"), 1002, "within another"),
        (frame(0x02, b"a") + frame(0x02, b"a"), 1002, "within another"),
        (frame(0x01, b"a") + frame(0xC0, b"a"), 1002, "reserved"),
        (frame(0x09, b"a"), 1002, "fragment"),
        (frame(0x08), 1002, "fragment"),
        (frame(0x89, bytes(126)), 1002, "exceeds the limit of 125"),
        (frame(0x88, b"\x03\xe8" + bytes(124)), 1002, "exceeds the limit of 125"),
        (frame(0x81, b"a", wide=2), 1002, "more bytes than are needed"),
        (frame(0x81, bytes(125), wide=8), 1002, "more bytes than are needed"),
        (frame(0x81, bytes(0xFFFF), wide=8), 1002, "more bytes than are needed"),
        (b"\x82\xff" + (1 << 63).to_bytes(8) + MASK, 1002, "highest bit"),
        (frame(0x88, b"\x03"), 1002, "half of a code"),
        (frame(0x88, b"\x03\xe8\xff"), 1007, "UTF-8"),
        (frame(0x81, b"\xff"), 1007, "UTF-8"),
        (frame(0x81, b"\xed\xa0\x80"), 1007, "UTF-8"),  # a surrogate
        (frame(0x81, b"\xc0\xaf"), 1007, "UTF-8"),
        (frame(0x01, b"\xc3") + frame(0x80), 1007, "UTF-8"),
        *((frame(0x88, code.to_bytes(2)), 1002, str(code)) for code in (0, 999, 1004, 1005, 1006, 1015, 2999, 5000)),
    ],
)
def test_H042_what_leaves_a_choice_is_refused(stream: bytes, code: int, why: str) -> None:
    """With the code that says so, whether it comes at once or byte by byte."""
    for pieces in ([stream], cut(stream, range(len(stream)))):
        with pytest.raises(FrameError, match=why) as refused:
            read(*pieces)
        assert refused.value.code == code


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1011, 1013, 1014, 3000, 4999])
def test_codes_that_may_be_sent_are_taken(code: int) -> None:
    """Those of the RFC and of IANA's list, and those of applications."""
    assert read(frame(0x88, code.to_bytes(2))) == [Control(CLOSE, b"", code)]


def test_H043_a_message_that_is_too_long_is_refused_before_it_comes() -> None:
    """By the length that its frame tells; so are fragments that are too long together; what just fits is taken."""
    assert read(frame(0x82, bytes(10)), most_bytes=10) == [bytes(10)]
    assert read(frame(0x02, bytes(5)), frame(0x80, bytes(5)), most_bytes=10) == [bytes(10)]
    for stream in (frame(0x82, bytes(11)), frame(0x02, bytes(5)) + frame(0x80, bytes(6))):
        with pytest.raises(FrameError, match="exceeds the limit of 10 bytes") as refused:
            read(stream, most_bytes=10)
        assert refused.value.code == 1009
    with pytest.raises(FrameError) as refused:
        read(b"\x82\xff" + (10**12).to_bytes(8))
    assert refused.value.code == 1009
    assert read(frame(0x89, bytes(11)), most_bytes=10) == [Control(PING, bytes(11))]


def test_what_has_come_is_counted() -> None:
    """Of frames and of messages that are not complete; nothing when all is given away."""
    reader = FrameReader(MOST)
    reader.feed(frame(0x02, bytes(1000))[:500])
    assert (reader.next(), reader.held) == (None, 500)
    reader.feed(frame(0x02, bytes(1000))[500:])
    assert (reader.next(), reader.next(), reader.held) == (FRAGMENT, None, 1000)
    reader.feed(frame(0x80, bytes(10)) + frame(0x81, b"next"))
    assert reader.next() == bytes(1010)
    assert (reader.next(), reader.held) == ("next", 0)


# What wsproto thinks

OPCODES = st.sampled_from([0x0, 0x1, 0x2, 0x8, 0x9, 0xA, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A, 0x83, 0xC1, 0x91, 0x0B])
CODES = st.integers(990, 1016).filter(lambda code: code != 1014)  # which IANA lists, and wsproto does not know
PAYLOADS = st.one_of(
    st.binary(max_size=140),
    st.text(max_size=60).map(str.encode),
    st.builds(lambda code, reason: code.to_bytes(2) + reason.encode(), CODES, st.text(max_size=10)),
    st.integers(0xFFFE, 0x10001).map(bytes),
)
MASKS = st.binary(min_size=4, max_size=4)
WIDTHS = st.sampled_from([0, 0, 0, 2, 8])
FRAMES = st.builds(frame, OPCODES, PAYLOADS, mask=MASKS, wide=WIDTHS)


def ours(pieces: Sequence[bytes]) -> tuple[list[object], int]:
    """What we read, up to a close or a refusal, and the code of that."""
    reader, found = FrameReader(1 << 30), list[object]()
    try:
        for piece in pieces:
            reader.feed(piece)
            while (one := reader.next()) is not None:
                if one is not FRAGMENT:
                    found.append((one.kind, one.payload, one.code) if isinstance(one, Control) else one)
                if isinstance(one, Control) and one.kind == CLOSE:
                    return found, 0
    except FrameError as error:
        return found, error.code
    return found, 0


def theirs(pieces: Sequence[bytes]) -> tuple[list[object], int]:
    """The same as wsproto reads it."""
    server, found, parts = Connection(ConnectionType.SERVER), list[object](), list[object]()
    for piece in pieces:
        server.receive_data(piece)
        for event in server.events():
            if isinstance(event, CloseConnection) and server.state is ConnectionState.OPEN:
                return found, int(event.code)  # how it tells of a refusal
            _note(event, found, parts)
            if isinstance(event, CloseConnection):
                return found, 0
    return found, 0


def _note(event: Event, found: list[object], parts: list[object]) -> None:
    if isinstance(event, BytesMessage | TextMessage):
        parts.append(bytes(event.data) if isinstance(event, BytesMessage) else event.data)
        if event.message_finished:
            found.append(type(parts[0])().join(parts))  # type: ignore[attr-defined]  # of str or bytes
            parts.clear()
    elif isinstance(event, Ping | Pong):
        found.append((PING if isinstance(event, Ping) else PONG, bytes(event.payload), 0))
    elif isinstance(event, CloseConnection):
        code = 0 if event.code == 1005 else int(event.code)
        found.append((CLOSE, (event.reason or "").encode(), code))


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(0, 400), max_size=6))
@example([frame(0x88)], [])
@example([frame(0x01, b"\xc3"), frame(0x89, b"?"), frame(0x80, b"\xbc")], [1, 5])
def test_wsproto_reads_the_same(frames: list[bytes], places: list[int]) -> None:
    """The same messages before the same refusal; the end of a frame that wsproto refuses early may still be missing."""
    pieces = cut(b"".join(frames), places)
    (found, code), (expected, other) = ours(pieces), theirs(pieces)
    assert (found, bool(code)) == (expected, bool(other))


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_any_bytes_are_read_alike_however_they_are_cut(data: bytes, places: list[int]) -> None:
    """And nothing but a refusal is raised."""
    assert ours(cut(data, places)) == ours([data])


@pytest.mark.parametrize("sizes", [(0,), (1, 0), (96 * 1024,), (10, 96 * 1024, 1), (300 * 1024, 7)])
def test_H170_a_long_message_leaves_in_fragments(sizes: tuple[int, ...]) -> None:
    """Each has some of it, and the first one says what it is; read again, they are the message."""
    parts = tuple(bytes([65 + at]) * size for at, size in enumerate(sizes))
    for is_text in (False, True):
        frames = list(fragments(LongMessage(parts, is_text=is_text)))
        assert frames[0][0] & 0x0F == (1 if is_text else 2)
        assert all(one[0] == 0 for one in frames[1:-1])
        assert frames[-1][0] & 0x80
        assert all(len(one) <= 96 * 1024 + 10 for one in frames)
        message, payload = LongMessage(parts, is_text=is_text).joined(), b""
        for one in frames:
            size = one[1]
            payload += one[2 if size < 126 else 4 if size == 126 else 10 :]
        assert payload == b"".join(parts)
        assert (message.encode() if isinstance(message, str) else message) == payload
    assert list(fragments("x")) == [b"\x81\x01x"]
