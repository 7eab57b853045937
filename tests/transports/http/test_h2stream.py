"""`invoker.transports.http.h2stream`: what a stream of HTTP/2 holds until it is taken, and what goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import h2.errors
import h2.events
import pytest
from h2.connection import H2Connection
from h2.events import InformationalResponseReceived, ResponseReceived, StreamEnded

from invoker.core.http import ResponseHead
from invoker.transports.http.exchange import Exchange
from tests.attack.floods import DATA, END_STREAM, WINDOW_UPDATE, frame
from tests.transports.http.test_transport import H2Wire, h2_wire
from tests.transports.served import Served, until

LINES = "application/x-ndjson"


class Mute:
    """Reads nothing once it has begun."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.over = asyncio.Event()

    async def run(self, xs: AsyncIterator[int]) -> AsyncIterator[int]:
        self.begun.set()
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            self.over.set()


async def first(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x
        return


async def double(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield 2 * x


def begin(wire: H2Wire, stream: int, path: str) -> None:
    head = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
    wire.connection.send_headers(stream, [*head, ("content-type", LINES), ("accept", LINES)])


async def fill(wire: H2Wire, stream: int) -> None:
    """Send items, in a frame each, until the window of the stream is used up."""
    await wire.flush()
    while wire.connection.local_flow_control_window(stream) >= 100:
        if wire.connection.local_flow_control_window(stream) < 1000:
            await asyncio.sleep(0.02)  # what was taken is told
        try:
            async with asyncio.timeout(0.01):
                await wire.events(h2.events.WindowUpdated)
        except TimeoutError:
            pass
        for _ in range(20):
            if wire.connection.local_flow_control_window(stream) >= 100:
                wire.connection.send_data(stream, b"1\n" * 50)
        await wire.flush()


@pytest.mark.parametrize("how", ["reset", "abort"])
async def test_H160_who_leaves_a_stream_whose_body_is_not_taken_cancels_it(how: str) -> None:
    """By RST_STREAM, or with the connection."""
    mute = Mute()
    async with Served.at(mute.run) as served, h2_wire(served) as wire:
        begin(wire, 1, "/")
        await fill(wire, 1)
        assert mute.begun.is_set()
        if how == "reset":
            wire.connection.reset_stream(1, 8)
            await wire.flush()
        else:
            wire.wire.writer.transport.abort()
        await mute.over.wait()
        await until(lambda: not served.driver.engine.running)


async def test_H160_a_stream_whose_body_is_not_taken_holds_up_no_other() -> None:
    """The other one is answered on the same connection."""
    mute = Mute()
    async with Served.at(mute.run, double) as served, h2_wire(served) as wire:
        begin(wire, 1, "/run")
        await fill(wire, 1)
        begin(wire, 3, "/double")
        wire.connection.send_data(3, b"4\n", end_stream=True)
        await wire.flush()
        event = await wire.events(h2.events.DataReceived)
        assert isinstance(event, h2.events.DataReceived)
        assert (event.stream_id, event.data) == (3, b"8\n")


@pytest.mark.parametrize("how", ["head", "trailers", "data"])
async def test_H015_a_body_that_is_shorter_than_announced_is_not_its_end(how: str) -> None:
    """Whatever frame ends it; the function commits nothing."""
    ended: list[str] = []

    async def count(xs: AsyncIterator[bytes]) -> int:
        size = 0
        try:
            async for x in xs:
                size += len(x)
            ended.append("whole")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return size

    async with Served.at(count) as served, h2_wire(served) as wire:
        head = [(":method", "POST"), (":path", "/count"), (":scheme", "http"), (":authority", "localhost")]
        head += [("content-type", "application/octet-stream"), ("content-length", "10")]
        wire.connection.send_headers(1, head, end_stream=how == "head")
        if how != "head":
            wire.connection.send_data(1, b"abc")
            await wire.flush()
            await asyncio.sleep(0.05)
            if how == "trailers":
                wire.connection.send_headers(1, [("x-sum", "1")], end_stream=True)
                await wire.flush()
            else:
                await wire.wire.send(frame(DATA, END_STREAM, 1))
        await wire.flush()
        if how == "data":
            await wire.wire.ended()
        else:
            event = await wire.events(h2.events.StreamReset)
            assert event.error_code == h2.errors.ErrorCodes.PROTOCOL_ERROR
        await until(lambda: not served.driver.engine.running)
        assert "whole" not in ended


async def test_H161_a_body_behind_the_end_of_its_response_is_not_wanted() -> None:
    """Its stream is ended by NO_ERROR; what still comes of it is dropped, and the others go on."""
    async with Served.at(first, double) as served, h2_wire(served) as wire:
        begin(wire, 1, "/double")
        begin(wire, 3, "/first")
        wire.connection.send_data(3, b"1\n2\n")
        late = [wire.connection.data_to_send()]
        for _ in range(3):
            wire.connection.send_data(3, b"3\n" * 8000)
            late.append(wire.connection.data_to_send())
        await wire.wire.send(late[0])
        ends: list[tuple[type, int | None, int]] = []
        while len(ends) < 2:
            for event in wire.connection.receive_data(await wire.wire.reader.read(65536)):
                if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                    ends.append((type(event), event.stream_id, getattr(event, "error_code", 0)))
        assert ends == [(h2.events.StreamEnded, 3, 0), (h2.events.StreamReset, 3, 0)]
        for data in late[1:]:
            await wire.wire.send(data)
        wire.connection.send_data(1, b"4\n", end_stream=True)
        await wire.flush()
        answer = await wire.events(h2.events.DataReceived)
        assert isinstance(answer, h2.events.DataReceived)
        assert (answer.stream_id, answer.data) == (1, b"8\n")


async def test_padding_opens_the_window_of_its_stream() -> None:
    """More than a window of it: what nobody takes would else be missing for ever."""
    async with Served.at(double) as served, h2_wire(served) as wire:
        begin(wire, 1, "/")
        sent = 0
        while sent < 100_000:
            while wire.connection.local_flow_control_window(1) < 300:
                await wire.events(h2.events.WindowUpdated)
            wire.connection.send_data(1, b"1\n", pad_length=250)
            sent += 253
            await wire.flush()
        wire.connection.end_stream(1)
        await wire.flush()
        await wire.events(h2.events.StreamEnded)


async def test_the_window_of_the_connection_is_opened_for_what_nobody_takes() -> None:
    """More than a window of it behind a response, and there is still room for others."""
    async with Served.at(first, double) as served, h2_wire(served) as wire:
        for stream in range(1, 21, 2):
            begin(wire, stream, "/first")
            wire.connection.send_data(stream, b"1\n" * 5000)
            await wire.flush()
            await wire.events(h2.events.StreamEnded)
        begin(wire, 21, "/double")
        wire.connection.send_data(21, b"4\n", end_stream=True)
        await wire.flush()
        event = await wire.events(h2.events.DataReceived)
        assert isinstance(event, h2.events.DataReceived)
        assert event.data == b"8\n"


@pytest.mark.parametrize("how", ["reset", "abort"])
async def test_H160_who_leaves_a_handler_that_streams_without_reading_cancels_it(how: str) -> None:
    """As the numbers of the page do, whose watchers are few."""
    begun, over = asyncio.Event(), asyncio.Event()

    class Numbers:
        async def answer(self, exchange: Exchange) -> None:
            exchange.begin(ResponseHead(200, ()))
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                over.set()

    async with Served.at(double, handler=lambda path: Numbers() if path == "/n" else None) as served:
        async with h2_wire(served) as wire:
            wire.begin(1, path="/n", end=True)
            await wire.flush()
            await begun.wait()
            if how == "reset":
                wire.connection.reset_stream(1, 8)
                await wire.flush()
            else:
                wire.wire.writer.transport.abort()
            await over.wait()
        await until(lambda: not any(one.get_name() in ("response", "watch") for one in asyncio.all_tasks()))


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
