"""`invoker.transports.http.h2`: frames that h2 alone would take otherwise than RFC 9113 or we want."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import h2.errors
import h2.events
import pytest

from invoker.transports.http.connections import State
from invoker.transports.http.h2 import Http2
from tests.attack.floods import (
    DATA,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    frame,
    last_goaway,
    request,
)
from tests.transports.http.test_h2 import Held, echo, ended
from tests.transports.http.test_transport import h2_wire
from tests.transports.served import Served, until


@pytest.mark.parametrize("is_cut", [False, True])
async def test_H262_a_client_that_says_goaway_gets_what_it_has_asked_for(is_cut: bool) -> None:
    """As `session.close()` of Node says it, perhaps with the last request; the connection ends behind the response."""
    held = Held()
    async with Served.at(held.run) as served, h2_wire(served) as wire:
        wire.begin(1)
        wire.connection.send_data(1, b"x" * 16_000)
        await wire.flush()
        wire.connection.send_data(1, b"x" * 16_000, end_stream=True)
        data = wire.connection.data_to_send() + frame(GOAWAY, 0, 0, bytes(8)) + frame(PING, 0, 0, bytes(8))
        for at in range(0, len(data), 1 if is_cut else len(data)):
            wire.wire.writer.write(data[at : at + 1] if is_cut else data)
            if at > len(data) - 50:
                await asyncio.sleep(0.001)
        await held.begun.wait()
        await asyncio.sleep(0.05)
        held.go.set()
        events = await ended(wire)
        assert sum(len(one.data) for one in events if isinstance(one, h2.events.DataReceived)) == 32_000
        assert h2.events.PingAckReceived in map(type, events)
        assert isinstance(events[-1], h2.events.ConnectionTerminated)
        assert events[-1].error_code == h2.errors.ErrorCodes.NO_ERROR


async def test_H262_an_idle_client_that_says_goaway_is_left_at_once() -> None:
    """It asks for nothing more."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE, frame(GOAWAY, 0, 0, bytes(8)))
        assert last_goaway(await wire.ended()) == 0


async def test_H175_requests_that_the_server_has_to_take_back_end_the_connection() -> None:
    """A body behind its end resets its stream, as often as the client's own resets would be allowed."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE, *(request(one) + frame(DATA, 0, one, b"x") for one in range(1, 2001, 2)))
        assert last_goaway(await wire.ended()) == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM


async def test_H165_connect_resets_its_stream_only() -> None:
    """It has no path, and nothing is a proxy here."""
    async with Served.at(echo) as served, served.wire() as wire:
        tunnel = frame(HEADERS, END_HEADERS, 1, b"\x02\x07CONNECT\x01\x09localhost")
        await wire.send(PREFACE, tunnel, frame(PING, 0, 0, b"the last"))
        await wire.reader.readuntil(frame(RST_STREAM, 0, 1, b"\0\0\0\x01"))


async def test_H175_a_frame_that_is_too_long_ends_its_connection_at_its_head() -> None:
    """Nothing of it is held."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE, b"\xff\xff\xff\xfe\0\0\0\0\0")
        assert last_goaway(await wire.ended()) == h2.errors.ErrorCodes.FRAME_SIZE_ERROR


async def test_what_has_come_from_a_client_that_takes_nothing_waits() -> None:
    """A request that began then would have no time limit: the time for writing runs only for those before it."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE, request(1))
        await until(lambda: "Http2" in [type(one).__name__ for one in served.transport.connections.idle])
        (connection,) = served.transport.connections.open
        await until(lambda: connection._h2.highest_inbound_stream_id == 1 and not connection._streams)
        connection.pause_writing()
        connection.data_received(request(3))
        connection._handle()
        assert connection._h2.highest_inbound_stream_id == 1
        assert connection._alarm._action == connection._end
        connection.resume_writing()
        await until(lambda: connection._h2.highest_inbound_stream_id == 3)


async def test_H173_a_connection_that_only_uploads_may_be_ended_for_others() -> None:
    """While all its requests wait for their bodies, as with HTTP/1.1; a request that runs beside them spares it."""
    held = Held()
    async with Served.at(held.run) as served, h2_wire(served) as wire:
        connections = served.transport.connections
        head = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
        upload = [*head, ("content-type", "application/octet-stream"), ("content-length", "1")]
        wire.connection.send_headers(1, upload)
        await wire.flush()
        await until(lambda: set(connections.waiting) == connections.open)
        wire.begin(3, end=True)
        await wire.flush()
        await held.begun.wait()
        assert not connections.waiting
        wire.connection.reset_stream(3)
        await wire.flush()
        await until(lambda: set(connections.waiting) == connections.open)
        wire.connection.send_data(1, b"x", end_stream=True)
        await wire.flush()
        await until(lambda: not connections.waiting)
        held.go.set()
        await wire.events(h2.events.ResponseReceived)
        wire.connection.send_headers(5, upload)
        await wire.flush()
        await until(lambda: set(connections.waiting) == connections.open)
        connections.most = 1
        async with served.wire() as last:
            await wire.wire.ended()
            assert (len(connections.open), len(connections.waiting)) == (1, 0)
            await last.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await last.answer())[0] == 200


async def test_H173_a_request_that_runs_spares_a_connection_whose_upload_begins_later() -> None:
    """Until its response is there; then only the upload is left."""
    held = Held()
    async with Served.at(held.run) as served, h2_wire(served) as wire:
        connections = served.transport.connections
        wire.begin(1, end=True)
        await wire.flush()
        await held.begun.wait()
        head = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
        wire.connection.send_headers(3, [*head, ("content-type", "application/octet-stream"), ("content-length", "1")])
        await wire.flush()
        (connection,) = connections.open
        await until(lambda: connection._slow == 1)
        assert not connections.waiting
        held.go.set()
        await until(lambda: set(connections.waiting) == connections.open)


@pytest.mark.parametrize("method", ["POST", "HEAD"])
async def test_H173_a_connection_whose_upload_was_refused_may_be_ended_for_others(method: str) -> None:
    """Once the response is sent. Otherwise those that are refused for want of room would keep it for half a minute."""
    async with Served.at(echo) as served, h2_wire(served) as wire:
        connections = served.transport.connections
        wire.connection.update_settings({4: 0})
        head = [(":method", method), (":path", "/nowhere"), (":scheme", "http"), (":authority", "localhost")]
        wire.connection.send_headers(1, [*head, ("content-length", "9")])
        await wire.flush()
        await wire.events(h2.events.ResponseReceived)
        (connection,) = connections.open
        await until(lambda: connection._streams[1]._state is State.LINGERING)
        assert set(connections.waiting) == (set() if method == "POST" else connections.open)
        wire.connection.update_settings({4: 1000})
        await wire.flush()
        await until(lambda: set(connections.waiting) == connections.open)
        wire.connection.send_data(1, b"123456789", end_stream=True)
        await wire.flush()
        await wire.events(h2.events.StreamEnded)
        await until(lambda: not connection._streams)
        assert (connection._slow, list(connections.waiting), list(connections.idle)) == (0, [], [connection])


async def test_H173_a_request_behind_other_frames_is_not_ended_for_others() -> None:
    """The frames wait for their turn, and the socket has nothing more to read."""
    tried: list[bool] = []
    handle = Http2._handle

    def handle_(connection: Http2) -> None:
        handle(connection)
        if connection._frames.waiting and not connection._streams:
            connection._connections.idle[connection] = None  # it is not new any more
            tried.append(connection._connections.evict())

    async with Served.at(echo) as served, h2_wire(served) as wire:
        with patch.object(Http2, "_handle", handle_):
            for _ in range(40):
                wire.connection.ping(bytes(8))
            wire.begin(1, end=True)
            await wire.flush()
            await wire.events(h2.events.StreamEnded)
        assert set(tried) == {False}
        await until(served.transport.connections.evict)


async def test_H166_who_takes_what_was_written_has_no_time_limit_any_more() -> None:
    """The time runs from the moment at which nothing more can be written."""
    held = Held()
    async with Served.at(held.run) as served, h2_wire(served) as wire:
        wire.begin(1, end=True)
        await wire.flush()
        await held.begun.wait()
        (connection,) = served.transport.connections.open
        connection.pause_writing()
        assert connection._alarm._action == connection._not_taken
        connection.resume_writing()
        assert connection._alarm._action is None
        held.go.set()
        await wire.events(h2.events.ResponseReceived)


async def test_who_goes_on_sending_behind_the_end_is_cut() -> None:
    """A little is read, since a reset would overtake the GOAWAY; more than that ends the connection before its time."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(PREFACE)
        await until(lambda: "Http2" in [type(one).__name__ for one in served.transport.connections.idle])
        (connection,) = served.transport.connections.open
        connection.end_when_idle()
        connection._alarm.unset()
        for _ in range(4):
            connection.data_received(bytes(1 << 20))
        assert not connection._is_lost
        connection.data_received(b"x")
        await until(lambda: connection._is_lost)
