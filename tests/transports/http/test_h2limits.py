"""`invoker.transports.http.h2limits`: what counts as a flood, and how much is handled at once."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from h2.connection import H2Connection
from h2.events import ResponseReceived
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st

from invoker.transports.http.h1 import PREFACE
from invoker.transports.http.h2limits import FloodError, FrameRateLimit, bound_table, server_side
from tests.attack.floods import (
    CONTINUATION,
    DATA,
    END_STREAM,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    request,
)

ALLOWED = 1000


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def parts(rate_limit: FrameRateLimit, data: bytes) -> Iterator[bytes]:
    rate_limit.put(data)
    while rate_limit.waiting:
        yield rate_limit.take()


@pytest.fixture
def rate_limit(clock: Clock) -> FrameRateLimit:
    one = FrameRateLimit(clock)
    list(parts(one, PREFACE))
    return one


def is_flood(rate_limit: FrameRateLimit, data: bytes) -> bool:
    try:
        list(parts(rate_limit, data))
    except FloodError:  # such a connection ends; here the same client goes on with its next frame
        rate_limit._data, rate_limit._at, rate_limit._left = b"", 0, 0
        return True
    return False


@pytest.mark.parametrize(
    "one",
    [
        frame(PING, 0, 0, bytes(8)),
        frame(SETTINGS, 0, 0),
        frame(SETTINGS, 1, 0),
        frame(PRIORITY, 0, 1, bytes(5)),
        frame(WINDOW_UPDATE, 0, 0, bytes(4)),
        frame(DATA, 0, 1),
        frame(DATA, 8, 1, bytes(256)),  # nothing but padding
        frame(0xFE, 0, 0),
    ],
)
def test_frames_that_ask_for_nothing_are_allowed_a_thousand_times(rate_limit: FrameRateLimit, one: bytes) -> None:
    """One more is a flood, whatever their kind."""
    assert not is_flood(rate_limit, one * ALLOWED)
    assert is_flood(rate_limit, one)


@pytest.mark.parametrize(
    "one",
    [
        request(1),
        frame(DATA, 0, 1, b"x"),
        frame(DATA, 0, 1, bytes(16_384)),
        frame(DATA, END_STREAM, 1),
        frame(HEADERS, 5, 1),
    ],
)
def test_requests_and_bodies_are_no_flood(rate_limit: FrameRateLimit, one: bytes) -> None:
    """However many, and however small their parts."""
    assert not is_flood(rate_limit, one * 5000)


def test_requests_that_are_taken_back_are_a_flood(rate_limit: FrameRateLimit) -> None:
    """By their RST_STREAMs, which count twice."""
    both = request(1) + frame(RST_STREAM, 0, 1, bytes(4))
    assert not is_flood(rate_limit, both * (ALLOWED // 2))
    assert is_flood(rate_limit, both)


def test_long_settings_count_more(rate_limit: FrameRateLimit) -> None:
    """A frame may hold thousands of them."""
    one = frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 65_535) * 320)
    assert not is_flood(rate_limit, one * 32)
    assert is_flood(rate_limit, one)


def test_H175_a_head_has_few_bytes(rate_limit: FrameRateLimit) -> None:
    """It is read in one go, which takes long where it is long."""
    head = request(1, 0) + frame(CONTINUATION, 0, 1, bytes(16_000)) * 8
    assert not is_flood(rate_limit, head)
    assert is_flood(rate_limit, frame(CONTINUATION, 0, 1, bytes(16_000)))


def test_a_head_has_few_continuations(rate_limit: FrameRateLimit) -> None:
    """Sixteen, then it is a flood; the next head may have as many."""
    head = request(1, 0) + frame(CONTINUATION, 0, 1, b"x") * 16
    assert not is_flood(rate_limit, head * 3)
    assert is_flood(rate_limit, frame(CONTINUATION, 0, 1))


def test_time_and_what_is_sent_allow_more(rate_limit: FrameRateLimit, clock: Clock) -> None:
    """A hundred a second, up to a thousand; one for each KiB."""
    ping = frame(PING, 0, 0, bytes(8))
    assert not is_flood(rate_limit, ping * ALLOWED)
    clock.now_s += 1
    assert not is_flood(rate_limit, ping * 100)
    assert is_flood(rate_limit, ping)
    clock.now_s += 1000
    assert not is_flood(rate_limit, ping * ALLOWED)
    rate_limit.sent(1024 * 5000)
    assert not is_flood(rate_limit, ping * 5000)
    assert is_flood(rate_limit, ping)


def test_few_frames_are_given_on_at_once(rate_limit: FrameRateLimit) -> None:
    """No part has more than 16 frames' heads."""
    ping = frame(PING, 0, 0, bytes(8))
    given = list(parts(rate_limit, ping * 500))
    assert b"".join(given) == ping * 500
    assert max(map(len, given)) <= 17 * len(ping)


@given(st.lists(st.sampled_from([request(1), frame(PING, 0, 0, bytes(8)), frame(DATA, 0, 1, bytes(300))])), st.data())
def test_however_it_is_cut_the_same_is_given_on_and_counted(frames: list[bytes], data: st.DataObject) -> None:
    """Reads end anywhere, also in the middle of a head."""
    stream = PREFACE + b"".join(frames)
    one, whole = FrameRateLimit(Clock()), FrameRateLimit(Clock())
    list(parts(whole, stream))
    given_on, at = b"", 0
    while at < len(stream):
        size = data.draw(st.integers(1, 50))
        given_on += b"".join(parts(one, stream[at : at + size]))
        at += size
    assert given_on == stream
    assert one._allowance == whole._allowance


def test_a_client_cannot_make_the_table_of_sent_headers_large() -> None:
    """It may ask for 4 GiB; what is sent then is understood by it nevertheless."""
    server, client = server_side(), H2Connection()
    client.initiate_connection()
    client.update_settings({SettingCodes.HEADER_TABLE_SIZE: 1 << 30})
    server.initiate_connection()
    fields = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
    for stream in (1, 3):
        client.send_headers(stream, fields, end_stream=True)
    server.receive_data(client.data_to_send())
    assert server.encoder.header_table_size == 1 << 30
    bound_table(server)
    assert server.encoder.header_table_size == 4096
    for stream in (1, 3):
        server.send_headers(stream, [(b":status", b"200"), (b"x", b"y" * 100)], end_stream=True)
    told = [one.headers for one in client.receive_data(server.data_to_send()) if isinstance(one, ResponseReceived)]
    assert [dict(one)[b"x"] for one in told] == [b"y" * 100] * 2


@pytest.mark.parametrize(
    ("changes", "passes"), [(b"\x20\x3f\xe1\x1f", True), (b"\x20" * 3, False), (b"\x3f\xe1\x1f" * 3, False)]
)
def test_H175_a_head_changes_the_size_of_the_table_twice_at_most(changes: bytes, passes: bool) -> None:
    """Thousands of changes in one head took most of a second."""
    server = server_side()
    server.initiate_connection()
    server.receive_data(PREFACE + frame(SETTINGS, 0, 0))
    head = request(1)
    asked = frame(HEADERS, head[4], 1, changes + head[9:])
    if passes:
        assert server.receive_data(asked)
        return
    with pytest.raises(ProtocolError, match="more than twice"):
        server.receive_data(asked)


def test_H175_large_heads_are_parsed_few_at_a_time(rate_limit: FrameRateLimit) -> None:
    """A byte may be a field, and each field takes its time; small heads, and bodies, are not slower for it."""
    large, small, body = (
        frame(*one) for one in ((HEADERS, 4, 1, bytes(2000)), (HEADERS, 4, 1, bytes(100)), (DATA, 0, 1, bytes(9000)))
    )
    turns = [len(list(parts(rate_limit, one * 20))) for one in (large, small, body)]
    assert turns == [6, 2, 2]


def test_H175_a_stream_reset_for_its_clients_fault_counts_as_its_own_reset(rate_limit: FrameRateLimit) -> None:
    """Else a client could begin requests, and have them taken back, without end (CVE-2025-8671)."""
    for _ in range(ALLOWED // 2):
        rate_limit.fault()
    with pytest.raises(FloodError):
        rate_limit.fault()
