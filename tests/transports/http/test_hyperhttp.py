"""`invoker.transports.http.hyperhttp`: floods of HTTP/2, and what it refuses."""

from __future__ import annotations

import asyncio
import logging

import h2.errors
import h2.events
import h2.settings
import pytest

from tests.attack.floods import DATA, END_HEADERS, END_STREAM, PING, PREFACE, SETTINGS, frame, last_goaway, request
from tests.transports.http.test_transport import h2_wire
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
    """Hypercorn fails by it, and took the connection with it."""
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

    async def fail(*_: object) -> None:
        raise KeyError("a fault of hypercorn")

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
        await until(lambda: not any("_run" in str(one.get_coro()) for one in asyncio.all_tasks()))


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
    logger = "invoker.transports.http.hyperhttp"
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
