"""`invoker.transports.http.h2stream`: responses, whole and streamed, and the windows that they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import h2.errors
import h2.events
import pytest
from h2.connection import H2Connection

from invoker.core.http import Response, ResponseHead
from invoker.transports.http.exchange import Exchange, HttpSettings
from tests.attack.floods import RST_STREAM, WINDOW_UPDATE, frame
from tests.transports.http.test_transport import H2Wire, h2_wire
from tests.transports.served import Served, until

LONG = "application/octet-stream"
CANCEL = b"\0\0\0\x08"


async def double(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield 2 * x


def ask(wire: H2Wire, stream: int, path: str, *, method: str = "POST", accept: str = LONG, end: bool = True) -> None:
    head = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "localhost")]
    wire.connection.send_headers(stream, [*head, ("content-type", LONG), ("accept", accept)], end_stream=end)


async def received(wire: H2Wire, step: int = 0) -> list[h2.events.Event]:
    """What comes until all streams have ended; bytes that came are acknowledged, or ``step`` of them at a time."""
    events: list[h2.events.Event] = []
    left = {one for one in wire.connection.streams if not wire.connection.streams[one].closed}
    await wire.flush()
    while left:
        data = await wire.wire.reader.read(65_536)
        assert data, "the connection ended"
        for event in wire.connection.receive_data(data):
            events.append(event)
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                wire.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                left.discard(event.stream_id)
        await wire.flush()
    return events


async def some(wire: H2Wire, kind: type, count: int) -> list[int]:
    """The streams of the first events of a kind."""
    found: list[int] = []
    while len(found) < count:
        events = wire.connection.receive_data(await wire.wire.reader.read(65_536))
        found += [one.stream_id for one in events if isinstance(one, kind)]
    return found[:count]


def body_of(events: list[h2.events.Event], stream: int) -> bytes:
    return b"".join(one.data for one in events if isinstance(one, h2.events.DataReceived) and one.stream_id == stream)


def whole(x: bytes) -> bytes:
    return b"w" * 700_000


async def pieces(x: bytes) -> AsyncIterator[bytes]:
    for number in range(70):
        yield bytes([number]) * 10_000


async def test_what_is_longer_than_the_windows_comes_as_they_open() -> None:
    """Whole and streamed, of several streams, whose connection has one window of 64 KiB for all of them."""
    async with Served.at(whole, pieces) as served, h2_wire(served) as wire:
        for stream in range(1, 8, 2):
            ask(wire, stream, "/whole" if stream < 4 else "/pieces")
        events = await received(wire)
        for stream in range(1, 8, 2):
            want = whole(b"") if stream < 4 else b"".join(bytes([number]) * 10_000 for number in range(70))
            assert body_of(events, stream) == want
        (connection,) = served.transport.connections.open
        assert connection._frames._allowance > 2000  # what it takes lets a client open its windows more often


async def test_streams_send_in_turn() -> None:
    """A frame each, whichever was asked for first."""
    async with Served.at(whole, pieces) as served, h2_wire(served) as wire:
        wire.connection.update_settings({4: 0})
        wire.connection.increment_flow_control_window(1_000_000)
        for stream in (1, 3, 5):
            ask(wire, stream, "/whole")
        await wire.flush()
        await some(wire, h2.events.ResponseReceived, 3)
        wire.connection.update_settings({4: 1_000_000})
        await wire.flush()
        assert sorted(await some(wire, h2.events.DataReceived, 3)) == [1, 3, 5]


async def test_a_window_that_becomes_negative_opens_again() -> None:
    """By the settings of the client, which change the windows of its streams (RFC 9113, 6.9.2)."""
    async with Served.at(whole, pieces) as served, h2_wire(served) as wire:
        wire.connection.increment_flow_control_window(1_000_000)
        ask(wire, 1, "/whole")
        await wire.flush()
        await wire.events(h2.events.DataReceived)
        for size in (0, 1_000_000):
            wire.connection.update_settings({4: size})
            await wire.flush()
            await wire.events(h2.events.SettingsAcknowledged)
        assert isinstance(await wire.events(h2.events.StreamEnded), h2.events.StreamEnded)


@pytest.mark.parametrize(("method", "path"), [("HEAD", "/livez"), ("HEAD", "/long")])
async def test_head_has_the_head_alone(method: str, path: str) -> None:
    """With the length of what GET would get; nothing of it is held."""

    class Long:
        async def answer(self, exchange: Exchange) -> Response:
            return Response(200, (), bytes(1_000_000))

    handler = lambda path: Long() if path == "/long" else None  # noqa: E731
    async with Served.at(double, handler=handler) as served, h2_wire(served) as wire:
        ask(wire, 1, path, method=method)
        events = await received(wire)
        head = next(dict(one.headers) for one in events if isinstance(one, h2.events.ResponseReceived))
        assert (head[":status"], int(head["content-length"]) > 0) == ("200", True)
        assert body_of(events, 1) == b""
        assert served.driver.engine.memory.held == 0


async def test_a_refusal_ends_behind_the_rest_of_the_body() -> None:
    """Clients that take a reset for a failure get their response; the windows open for what nobody takes."""
    async with Served.at(double) as served, h2_wire(served) as wire:
        ask(wire, 1, "/nowhere", end=False)
        await wire.flush()
        await wire.events(h2.events.ResponseReceived)
        sent = 0
        while sent < 300_000:
            while (size := min(wire.connection.local_flow_control_window(1), 16_000)) < 1000:
                await wire.events(h2.events.WindowUpdated)
            wire.connection.send_data(1, bytes(size))
            sent += size
            await wire.flush()
        wire.connection.end_stream(1)
        await wire.flush()
        assert isinstance(await wire.events(h2.events.StreamEnded), h2.events.StreamEnded)
        assert wire.connection.outbound_flow_control_window <= 65_535


async def test_a_response_opens_the_window_for_what_its_handler_did_not_read() -> None:
    """A window of it has come by then, and more follows."""
    filled = asyncio.Event()

    class Early:
        async def answer(self, exchange: Exchange) -> Response:
            await filled.wait()
            return Response(200, (), b"early")

    handler = lambda path: Early() if path == "/early" else None  # noqa: E731
    async with Served.at(double, handler=handler) as served, h2_wire(served) as wire:
        ask(wire, 1, "/early", end=False)
        for _ in range(4):
            wire.connection.send_data(1, bytes(16_000))
        await wire.flush()
        await until(lambda: any(getattr(one, "_streams", ()) for one in served.transport.connections.open))
        filled.set()
        await wire.events(h2.events.WindowUpdated)
        while wire.connection.local_flow_control_window(1) < 49_000:
            await wire.events(h2.events.WindowUpdated)
        wire.connection.send_data(1, bytes(16_000), end_stream=True)
        await wire.flush()
        assert isinstance(await wire.events(h2.events.StreamEnded), h2.events.StreamEnded)


async def test_who_never_ends_its_body_is_told_that_it_is_not_wanted() -> None:
    """After the time for writing: END_STREAM, then RST_STREAM with NO_ERROR; the connection goes on."""
    async with Served.at(double, settings=HttpSettings(write_s=0.1)) as served, h2_wire(served) as wire:
        ask(wire, 1, "/nowhere", end=False)
        events = await received(wire)
        ends = [type(one) for one in events if isinstance(one, (h2.events.StreamEnded, h2.events.StreamReset))]
        assert ends[0] is h2.events.StreamEnded
        ask(wire, 3, "/livez", method="GET")
        await received(wire)


@pytest.mark.parametrize("step", [0, 1])
async def test_H166_who_takes_nothing_of_the_last_bytes_loses_the_stream(step: int) -> None:
    """Or a byte at a time, after the time for writing."""

    async def little(x: bytes) -> bytes:
        return b"x" * 1000

    async with Served.at(little, settings=HttpSettings(write_s=0.3)) as served, served.wire() as wire:
        client = H2Connection()
        client.local_settings.initial_window_size = 0
        client.local_settings.acknowledge()
        client.initiate_connection()
        fields = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "localhost")]
        client.send_headers(1, fields, end_stream=True)
        await wire.send(client.data_to_send())
        reset = asyncio.create_task(wire.reader.readuntil(frame(RST_STREAM, 0, 1, CANCEL)))
        while not reset.done():
            if step:
                wire.writer.write(frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\x01"))
            await asyncio.sleep(0.02)
        await reset


async def test_H166_a_window_that_has_become_negative_is_a_shut_one() -> None:
    """Who lets it stay so loses the rest of the response, after the time for writing."""
    go = asyncio.Event()

    async def late(x: bytes) -> AsyncIterator[bytes]:
        yield bytes(500)
        await go.wait()
        yield bytes(300)

    async with Served.at(late, settings=HttpSettings(write_s=0.3)) as served, h2_wire(served) as wire:
        for size in (1000, 0):
            wire.connection.update_settings({4: size})
            await wire.flush()
            await wire.events(h2.events.SettingsAcknowledged)
            if size:
                ask(wire, 1, "/late")
                await wire.flush()
                await wire.events(h2.events.DataReceived)
        go.set()
        reset = await wire.events(h2.events.StreamReset)
        assert isinstance(reset, h2.events.StreamReset)
        assert reset.error_code == h2.errors.ErrorCodes.CANCEL


@pytest.mark.parametrize("how", ["fails", "returns"])
async def test_H002_a_stream_that_its_handler_leaves_is_reset(how: str) -> None:
    """It has begun its response, and does not end it."""

    class Half:
        async def answer(self, exchange: Exchange) -> None:
            exchange.begin(ResponseHead(200, ()))
            exchange.write(b"half")
            await asyncio.sleep(0)
            if how == "fails":
                raise ValueError("a fault of a handler")

    handler = lambda path: Half() if path == "/half" else None  # noqa: E731
    async with Served.at(double, handler=handler) as served, h2_wire(served) as wire:
        ask(wire, 1, "/half")
        events = await received(wire)
        assert isinstance(events[-1], h2.events.StreamReset)
        assert events[-1].error_code == h2.errors.ErrorCodes.INTERNAL_ERROR


async def test_H002_what_was_given_before_a_failure_comes_before_the_reset() -> None:
    """As far as the windows allow."""

    async def fails(x: bytes) -> AsyncIterator[bytes]:
        yield b"one"
        raise ValueError("no more")

    async with Served.at(fails) as served, h2_wire(served) as wire:
        ask(wire, 1, "/fails", accept="*/*")
        events = await received(wire)
        assert body_of(events, 1) == b"one"
        assert isinstance(events[-1], h2.events.StreamReset)


async def test_H166_who_takes_nothing_of_a_stream_loses_it_alone() -> None:
    """After the time for writing, when enough waits for it; what runs beside it on the connection is answered."""
    over = asyncio.Event()

    async def endless(x: bytes) -> AsyncIterator[bytes]:
        try:
            while True:
                yield bytes(1000)
        finally:
            over.set()

    async def late(x: bytes) -> bytes:
        await over.wait()
        await asyncio.sleep(0.1)
        return b"late"

    async with Served.at(endless, late, settings=HttpSettings(write_s=0.2)) as served, h2_wire(served) as wire:
        wire.connection.increment_flow_control_window(1_000_000)
        ask(wire, 1, "/endless", accept="*/*")
        ask(wire, 3, "/late")
        await wire.flush()
        reset = await wire.events(h2.events.StreamReset)
        assert (reset.stream_id, reset.error_code) == (1, h2.errors.ErrorCodes.CANCEL)
        assert isinstance(await wire.events(h2.events.StreamEnded), h2.events.StreamEnded)


async def test_H002_a_response_that_cannot_be_made_resets_its_own_stream() -> None:
    """It fails in the middle of a long part; what runs beside it on the connection is answered."""
    failed = asyncio.Event()

    def parts() -> Iterator[bytes]:
        yield b"half"
        failed.set()
        raise ValueError("a fault in what makes it")

    class Long:
        async def answer(self, exchange: Exchange) -> None:
            exchange.begin(ResponseHead(200, ()))
            exchange.write(parts())
            await asyncio.Event().wait()

    async def late(x: bytes) -> bytes:
        await failed.wait()
        await asyncio.sleep(0.1)
        return b"late"

    handler = lambda path: Long() if path == "/long" else None  # noqa: E731
    async with Served.at(late, handler=handler) as served, h2_wire(served) as wire:
        ask(wire, 1, "/long")
        ask(wire, 3, "/late")
        await wire.flush()
        reset = await wire.events(h2.events.StreamReset)
        assert reset.stream_id == 1
        assert (await wire.events(h2.events.StreamEnded)).stream_id == 3


async def test_who_takes_a_stream_in_time_may_wait_for_more_of_it() -> None:
    """The time for writing does not run while the function gives nothing."""

    async def pauses(x: bytes) -> AsyncIterator[bytes]:
        yield bytes(200_000)
        yield b"there"
        await asyncio.sleep(0.6)
        yield b"more"

    async with Served.at(pauses, settings=HttpSettings(write_s=0.4)) as served, h2_wire(served) as wire:
        ask(wire, 1, "/pauses", accept="*/*")
        events = await received(wire)
        assert body_of(events, 1) == bytes(200_000) + b"theremore"


@pytest.mark.parametrize("path", ["/whole", "/pieces"])
async def test_H166_of_a_stream_that_its_client_resets_nothing_is_held(path: str) -> None:
    """Not even in the count of what nobody has taken."""
    async with Served.at(whole, pieces) as served, h2_wire(served) as wire:
        memory = served.transport.app.driver.engine.memory
        ask(wire, 1, path)
        await wire.flush()
        await wire.events(h2.events.DataReceived)
        wire.connection.reset_stream(1, h2.errors.ErrorCodes.CANCEL)
        await wire.flush()
        (connection,) = served.transport.connections.open
        await until(lambda: not connection._streams)
        await until(lambda: (memory.held, memory.unread) == (0, 0))
