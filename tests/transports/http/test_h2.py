"""`invoker.transports.http.h2`: what a connection of HTTP/2 takes, what it refuses, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

import h2.errors
import h2.events
import h2.settings
import pytest

from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.h2limits import MOST_STREAMS
from tests.attack.floods import (
    DATA,
    END_HEADERS,
    END_STREAM,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    last_goaway,
    request,
)
from tests.transports.http.test_transport import H2Wire, h2_wire
from tests.transports.served import Served, until


async def echo(x: bytes) -> bytes:
    return x


class Noted:
    """A function that keeps what it is called with."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    async def run(self, x: bytes) -> bytes:
        self.calls.append(x)
        return x


async def test_by_http_2_methods_in_lower_case_are_reset() -> None:
    """With their body; the streams beside them are answered."""
    noted = Noted()
    async with Served.at(noted.run) as served, h2_wire(served) as wire:
        wire.connection.config.validate_outbound_headers = False
        for stream, method in ((1, "post"), (3, "POST")):
            head = [(":method", method), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
            wire.connection.send_headers(stream, head)
            wire.connection.send_data(stream, b"x" * 1000, end_stream=True)
        await wire.flush()
        event = await wire.events(h2.events.StreamReset)
        assert (event.stream_id, event.error_code) == (1, h2.errors.ErrorCodes.PROTOCOL_ERROR)
        event = await wire.events(h2.events.ResponseReceived)
        assert (event.stream_id, event.headers[0]) == (3, (":status", "200"))
    assert noted.calls == [b"x" * 1000]


async def test_H165_a_path_that_is_not_ascii_resets_its_stream_only() -> None:
    """Those beside it are answered."""
    noted = Noted()
    async with Served.at(noted.run) as served, h2_wire(served) as wire:
        wire.begin(1, path="/\xe9", end=True)
        wire.begin(3, end=True)
        await wire.flush()
        event = await wire.events(h2.events.StreamReset)
        assert (event.stream_id, event.error_code) == (1, h2.errors.ErrorCodes.PROTOCOL_ERROR)
        event = await wire.events(h2.events.ResponseReceived)
        assert (event.stream_id, event.headers[0]) == (3, (":status", "200"))


@pytest.mark.parametrize("how", ["fault", "cut"])
async def test_H165_a_connection_that_fails_leaves_nothing(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests are cancelled, and their tasks end; so it is if the drain cuts it."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def waits(x: bytes) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return x

    def fail(*_: object) -> None:
        raise KeyError("a fault of h2")

    async with Served.at(waits) as served, h2_wire(served) as wire:
        wire.begin(1)
        wire.connection.send_data(1, b"x", end_stream=True)
        await wire.flush()
        await begun.wait()
        if how == "fault":
            monkeypatch.setattr("invoker.transports.http.h2.Http2._received", fail)
            wire.begin(3)
            wire.connection.send_data(3, b"x")
            await wire.flush()
        else:
            await asyncio.sleep(0)
            for one in list(served.transport.app.connections.open):
                one.cut()
        await over.wait()
        await until(lambda: not served.transport.app.connections.open)
        await until(lambda: not any(one.get_name() == "request" for one in asyncio.all_tasks()))


async def test_H054_http_2_does_not_offer_websocket() -> None:
    """So browsers open another connection for it; who tries nevertheless has its stream reset, and only that."""
    noted = Noted()
    async with Served.at(noted.run) as served, h2_wire(served) as wire:
        await wire.flush()
        changed = await wire.events(h2.events.RemoteSettingsChanged)
        assert isinstance(changed, h2.events.RemoteSettingsChanged)
        assert h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS in changed.changed_settings
        assert h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL not in changed.changed_settings
        wire.connection.config.validate_outbound_headers = False
        head = [(":method", "CONNECT"), (":protocol", "websocket"), (":path", "/run/ws"), (":scheme", "http")]
        wire.connection.send_headers(1, [*head, (":authority", "localhost"), ("sec-websocket-version", "13")])
        await wire.flush()
        event = await wire.events(h2.events.StreamReset)
        assert (event.stream_id, event.error_code) == (1, h2.errors.ErrorCodes.PROTOCOL_ERROR)
        wire.begin(3, end=True)
        await wire.flush()
        event = await wire.events(h2.events.ResponseReceived)
        assert (event.stream_id, event.headers[0]) == (3, (":status", "200"))


# Floods


@pytest.mark.parametrize("cuts", [(), (1, 10, 23), (24,), (30,)])
async def test_http_2_begins_however_its_preface_is_cut(cuts: tuple[int, ...]) -> None:
    """Byte by byte, or with everything behind it."""
    stream = PREFACE + request(1, END_HEADERS) + frame(DATA, END_STREAM, 1, b"here")
    async with Served.at(echo) as served, served.wire() as wire:
        for begin, end in zip((0, *cuts), (*cuts, len(stream)), strict=True):
            await wire.send(stream[begin:end])
            await asyncio.sleep(0.01)
        seen = b""
        while b"here" not in seen:
            more = await wire.reader.read(65536)
            assert more, "the connection ended"
            seen += more


@pytest.mark.parametrize("one", [frame(PING, 0, 0, bytes(8)), frame(SETTINGS, 0, 0), frame(DATA, 0, 1)])
async def test_a_flood_ends_with_a_goaway_and_others_are_served_meanwhile(
    one: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """ENHANCE_YOUR_CALM, one line in the log, and the rest is not taken."""
    logger = "invoker.transports.http.h2"
    with caplog.at_level(logging.INFO, logger):
        async with Served.at(echo) as served, served.wire() as wire:
            await wire.send(PREFACE, request(1, 4), one * 5000)
            good = asyncio.create_task(served.post(b"x"))
            assert last_goaway(await wire.ended()) == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM
            assert (await good).content == b"x"
    assert [record.levelname for record in caplog.records if record.name == logger] == ["INFO"]


async def test_others_have_a_turn_between_a_few_frames() -> None:
    """All nine hundred come in one read; the loop turns dozens of times before the last of them was taken."""
    turns, is_over = 0, False

    async def count() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    last = b"the last"
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE, frame(PING, 0, 0, bytes(8)) * 900, frame(PING, 0, 0, last))
        counting = asyncio.create_task(count())
        await wire.reader.readuntil(last)
        is_over = True
        await counting
    assert turns >= 900 // 16


async def test_a_client_of_http_2_that_pings_now_and_then_is_served() -> None:
    """Hundreds of frames that ask for nothing are no flood."""
    async with Served.at(echo) as served, h2_wire(served) as wire:
        for number in range(300):
            wire.connection.ping(number.to_bytes(8))
        wire.begin(1, end=True)
        await wire.flush()
        event = await wire.events(h2.events.ResponseReceived)
        assert (":status", "200") in event.headers


async def test_who_left_with_many_requests_under_way_leaves_no_lines(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio would warn of each write to a connection that is gone."""
    with caplog.at_level(logging.INFO):
        async with Served.at(echo) as served:
            async with served.wire() as wire:
                await wire.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
                await wire.answer()
            await until(lambda: not served.transport.connections.open)
    assert caplog.records == []


def test_h2_is_not_there_before_it_is_needed() -> None:
    """It takes its time, and some MB."""
    program = (
        "import sys, invoker.transports.http.transport, invoker.transports.http.socketconnection\n"
        "print(*(name for name in ('h2', 'hpack', 'h11', 'wsproto') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


async def test_H212_a_connection_is_new_until_its_first_request() -> None:
    """It is spared where descriptors are short."""
    async with Served.at(echo) as served, served.wire() as wire:
        idle = served.transport.connections.idle
        await wire.send(PREFACE)
        await until(lambda: "Http2" in [type(one).__name__ for one in idle])
        assert None not in idle.values()


# The end


async def ended(wire: H2Wire) -> list[h2.events.Event]:
    """What comes until the server ends the connection."""
    events: list[h2.events.Event] = []
    while data := await wire.wire.reader.read(65_536):
        events += wire.connection.receive_data(data)
    return events


class Held:
    """A function that answers when it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def run(self, x: bytes) -> bytes:
        self.begun.set()
        await self.go.wait()
        return x


async def test_who_asks_nothing_is_sent_away_with_goaway() -> None:
    """NO_ERROR, and the number of its last request."""
    async with Served.at(echo, settings=HttpSettings(idle_s=0.1)) as served, h2_wire(served) as wire:
        wire.begin(1, end=True)
        await wire.flush()
        events = await ended(wire)
        assert isinstance(events[-1], h2.events.ConnectionTerminated)
        assert (events[-1].error_code, events[-1].last_stream_id) == (h2.errors.ErrorCodes.NO_ERROR, 1)


async def test_a_request_under_way_keeps_its_connection() -> None:
    """It is neither idle nor ended for others; it is idle again behind the response."""
    held = Held()
    async with Served.at(held.run, settings=HttpSettings(idle_s=0.1)) as served, h2_wire(served) as wire:
        wire.begin(1, end=True)
        await wire.flush()
        await held.begun.wait()
        await asyncio.sleep(0.3)
        connections = served.transport.connections
        assert (len(connections.open), len(connections.idle)) == (1, 0)
        held.go.set()
        assert (":status", "200") in (await wire.events(h2.events.ResponseReceived)).headers
        await until(lambda: list(connections.idle) == list(connections.open))


async def test_R024_a_drain_refuses_what_begins_and_ends_behind_what_runs() -> None:
    """REFUSED_STREAM says that it can be sent again; the running request is answered, and then GOAWAY follows."""
    held = Held()
    async with Served.at(held.run) as served, h2_wire(served) as wire, h2_wire(served) as idle:
        wire.begin(1, end=True)
        await wire.flush()
        await idle.flush()
        await held.begun.wait()
        stopping = asyncio.create_task(served.transport.stop(10))
        assert isinstance((await ended(idle))[-1], h2.events.ConnectionTerminated)
        wire.begin(3, end=True)
        await wire.flush()
        refused = await wire.events(h2.events.StreamReset)
        assert (refused.stream_id, refused.error_code) == (3, h2.errors.ErrorCodes.REFUSED_STREAM)
        held.go.set()
        events = await ended(wire)
        assert (":status", "200") in next(one.headers for one in events if isinstance(one, h2.events.ResponseReceived))
        assert isinstance(events[-1], h2.events.ConnectionTerminated)
        wire.wire.writer.transport.abort()
        await stopping


async def test_a_transport_that_leaves_says_goaway_behind_the_next_response() -> None:
    """As HTTP/1.1 says that its connection closes; until then it is served."""
    async with Served.at(echo) as served, h2_wire(served) as wire:
        wire.begin(1, end=True)
        await wire.flush()
        await wire.events(h2.events.StreamEnded)
        served.transport.leave()
        wire.begin(3, end=True)
        await wire.flush()
        events = await ended(wire)
        kinds = [type(one) for one in events]
        assert kinds.index(h2.events.StreamEnded) < kinds.index(h2.events.ConnectionTerminated)


async def test_more_requests_at_once_than_allowed_end_the_connection() -> None:
    """A client knows the number; others are served."""
    async with Served.at(echo) as served, h2_wire(served) as wire:
        for stream in range(1, 2 * MOST_STREAMS + 2, 2):
            await wire.wire.send(wire.connection.data_to_send(), request(stream, END_HEADERS))
        assert last_goaway(await wire.wire.ended()) is not None
        assert (await served.post(b"x")).content == b"x"


@pytest.mark.parametrize(
    "head", [b"\x40\x01a\x7f\x81\x1e" + b"b" * 4000 + b"\xbe" * 8000, b"\x00\x7f\xff\xff\xff\xff\x0f"]
)
async def test_a_head_that_expands_ends_its_connection(head: bytes) -> None:
    """Fields that name a long one by a byte each, or a length of 2 GiB."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE, frame(1, 5, 1, head))
        assert last_goaway(await wire.ended()) not in (None, 0)
        assert (await served.post(b"x")).content == b"x"


async def test_while_a_client_takes_nothing_nothing_is_read_from_it() -> None:
    """Answers to its frames would pile up; it loses its connection after the time for writing."""

    async def little(x: bytes) -> bytes:
        return b"x" * 1000

    async with Served.at(little, settings=HttpSettings(write_s=0.5)) as served, served.wire() as wire:
        wire.writer.transport.pause_reading()
        await wire.send(PREFACE, frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\0\0"))
        await until(lambda: any(type(one).__name__ == "Http2" for one in served.transport.connections.open))
        (connection,) = served.transport.connections.open
        connection._transport.set_write_buffer_limits(1000)
        connection.pause_writing()
        await wire.send(request(1), frame(PING, 0, 0, bytes(8)) * 100)
        await asyncio.sleep(0.1)
        assert not connection._streams
        connection.resume_writing()
        await until(lambda: connection._h2.highest_inbound_stream_id == 1)
        connection._streams[1] = None
        connection.pause_writing()
        del connection._streams[1]
        await until(lambda: not served.transport.connections.open)
