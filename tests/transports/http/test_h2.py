"""`invoker.transports.http.h2`: what counts as a flood, and how much is given on at once."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator

import pytest
from h2.connection import H2Connection
from h2.events import InformationalResponseReceived, ResponseReceived, StreamEnded
from hypercorn.asyncio.worker_context import EventWrapper
from hypercorn.protocol.h2 import BufferCompleteError
from hypothesis import given
from hypothesis import strategies as st

from invoker.transports.http.h2 import PREFACE, Buffer, FloodError, FrameRateLimit
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
from tests.transports.served import Served, until

ALLOWED = 1000


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rate_limit(clock: Clock) -> FrameRateLimit:
    one = FrameRateLimit(clock)
    list(one.parts(PREFACE))
    return one


def is_flood(rate_limit: FrameRateLimit, data: bytes) -> bool:
    try:
        list(rate_limit.parts(data))
    except FloodError:
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
    parts = list(rate_limit.parts(ping * 500))
    assert b"".join(parts) == ping * 500
    assert max(map(len, parts)) <= 17 * len(ping)


@given(st.lists(st.sampled_from([request(1), frame(PING, 0, 0, bytes(8)), frame(DATA, 0, 1, bytes(300))])), st.data())
def test_however_it_is_cut_the_same_is_given_on_and_counted(frames: list[bytes], data: st.DataObject) -> None:
    """Reads end anywhere, also in the middle of a head."""
    stream = PREFACE + b"".join(frames)
    one, whole = FrameRateLimit(Clock()), FrameRateLimit(Clock())
    list(whole.parts(stream))
    given_on, at = b"", 0
    while at < len(stream):
        size = data.draw(st.integers(1, 50))
        given_on += b"".join(one.parts(stream[at : at + size]))
        at += size
    assert given_on == stream
    assert one._allowance == whole._allowance


@pytest.mark.parametrize("window", [0, 1])
async def test_H166_what_waits_for_a_window_is_bounded(window: int) -> None:
    """However often the client opens it by a byte."""
    given = 0

    async def endless() -> AsyncIterator[str]:
        nonlocal given
        while True:
            given += 1
            yield "x" * 1000

    async with Served.at(endless) as served, served.wire() as wire:
        client = H2Connection()
        client.local_settings.initial_window_size = window
        client.initiate_connection()
        fields = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
        client.send_headers(1, [*fields, ("accept", "application/x-ndjson")], end_stream=True)
        await wire.send(client.data_to_send())
        await until(lambda: given > 100)
        for _ in range(100 * window):
            await wire.send(frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\x01"))
            await asyncio.sleep(0.001)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert given < 400


async def test_a_buffer_lets_its_writer_go_on_when_little_is_left() -> None:
    """And whoever has written the last of it when nothing is."""
    buffer = Buffer(EventWrapper)
    writing = asyncio.create_task(buffer.push(bytes(40_000)))
    await asyncio.sleep(0)
    for size in (0, 1, 23_000):
        assert len(await buffer.pop(size)) == size
        await asyncio.sleep(0)
        assert not writing.done()
    await buffer.pop(1000)
    await writing
    await buffer.close()
    with pytest.raises(BufferCompleteError):
        await buffer.push(b"x")


@pytest.mark.parametrize(("expects", "ends"), [(True, False), (True, True), (False, False)])
async def test_H246_who_expects_to_be_told_to_go_on_is_told(expects: bool, ends: bool) -> None:
    """Before the body comes; not who sends none, or does not ask."""

    def size(x: bytes) -> int:
        return len(x)

    async with Served.at(size) as served, served.wire() as wire:
        client, events = H2Connection(), []
        client.initiate_connection()
        fields = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
        fields += [("content-type", "application/octet-stream"), *([("expect", "100-continue")] if expects else [])]
        client.send_headers(1, fields, end_stream=ends)
        await wire.send(client.data_to_send())

        async def read(*kinds: type) -> None:
            while not any(isinstance(one, kinds) for one in events):
                events.extend(client.receive_data(await wire.reader.read(65_536)))

        if expects and not ends:
            await read(InformationalResponseReceived)
        if not ends:
            client.send_data(1, b"abc", end_stream=True)
            await wire.send(client.data_to_send())
        await read(StreamEnded)
        told = [dict(one.headers)[b":status"] for one in events if isinstance(one, InformationalResponseReceived)]
        assert told == ([b"100"] if expects and not ends else [])
        assert [dict(one.headers)[b":status"] for one in events if isinstance(one, ResponseReceived)] == [b"200"]
