"""`invoker.transports.http.streamed`: streams over HTTP/1.1 and HTTP/2, in and out, behind the real transport."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded, StreamReset

from invoker import function
from invoker.core.http import ResponseHead
from invoker.core.streams import Limits
from invoker.transports.http.exchange import Exchange, HttpSettings
from tests.transports.served import Served, Wire, until

LINES, EVENTS = "application/x-ndjson", "text/event-stream"
BOTH = pytest.mark.parametrize("http2", [False, True])
HEAD = "POST / HTTP/1.1\r\nHost: localhost\r\n"
POST = f"{HEAD}Content-Type: {LINES}\r\nAccept: {LINES}\r\nTransfer-Encoding: chunked\r\n\r\n"


async def double(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield 2 * x


def double_sync(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        yield 2 * x


class Total:
    """Adds its inputs, and notes what it commits."""

    def __init__(self) -> None:
        self.commits: list[int] = []
        self.seen = 0
        self.over = threading.Event()

    async def run(self, xs: AsyncIterator[int]) -> AsyncIterator[int]:
        total = 0
        try:
            async for x in xs:
                self.seen += 1
                total += x
            self.commits.append(total)
            yield total
        finally:
            self.over.set()

    def run_sync(self, xs: Iterator[int]) -> Iterator[int]:
        total = 0
        try:
            for x in xs:
                self.seen += 1
                total += x
            self.commits.append(total)
            yield total
        finally:
            self.over.set()


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


async def read_line(wire: Wire) -> bytes:
    """The next chunk, which holds one line."""
    size = int(await wire.reader.readline(), 16)
    return (await wire.reader.readexactly(size + 2))[:-2]


@pytest.mark.parametrize("function", [double, double_sync])
async def test_H003_each_item_is_answered_before_the_next_is_sent(function: object) -> None:
    """One connection carries both directions at once."""
    async with Served.at(function) as served, served.wire() as wire:
        await wire.send(POST)
        for x in range(3):
            await wire.send(chunked(b"%d\n" % x))
            if not x:
                await wire.reader.readuntil(b"\r\n\r\n")
            assert await read_line(wire) == b"%d\n" % (2 * x)
        await wire.send(b"0\r\n\r\n")
        assert await wire.reader.readuntil(b"0\r\n\r\n") == b"0\r\n\r\n"
        await wire.send(POST, chunked(b"4\n"), b"0\r\n\r\n")
        assert b"8\n" in await wire.reader.readuntil(b"0\r\n\r\n")


@BOTH
@pytest.mark.parametrize("function", [double, double_sync])
async def test_H009_many_items_in_a_few_pieces_are_all_answered(function: object, *, http2: bool) -> None:
    """More than a function's inputs may hold at once: who sends them is slowed, and nothing is lost."""
    limits = Limits(hard_frames=8_192)
    count = 20_000
    body = b"".join(b"%d\n" % (n % 10) for n in range(count))
    async with Served.at(function, limits=limits) as served, served.client(http2=http2) as client:
        headers = {"Content-Type": LINES, "Accept": LINES}
        response = await client.post("/", content=body, headers=headers, timeout=60)
        assert response.status_code == 200
        assert response.text.split() == [str(2 * (n % 10)) for n in range(count)]


async def test_H009_few_items_may_wait_and_none_is_lost() -> None:
    """A piece of a body brings no more of them than an invocation may hold."""
    limits = Limits(high_frames=4, high_bytes=1 << 20, hard_frames=20, hard_bytes=1 << 20)
    body = b"1\n" * 5_000
    async with Served.at(double, limits=limits) as served, served.client() as client:
        response = await client.post("/", content=body, headers={"Content-Type": LINES, "Accept": LINES}, timeout=60)
        assert response.text == "2\n" * 5_000


async def test_H003_both_directions_of_one_http_2_stream() -> None:
    """The next item is sent when the answer to the last has come."""
    async with Served.at(double) as served, served.wire() as wire:
        h2 = Http2(wire)
        await h2.begin({"content-type": LINES, "accept": LINES})
        for x in range(3):
            h2.connection.send_data(1, b"%d\n" % x)
            await h2.flush()
            assert (await h2.until(DataReceived)).data == b"%d\n" % (2 * x)
        h2.connection.end_stream(1)
        await h2.flush()
        await h2.until(StreamEnded)


@pytest.mark.parametrize("name", ["run", "run_sync"])
@pytest.mark.parametrize("end", ["abort", "half", "malformed"])
async def test_H015_a_body_that_breaks_off_is_not_its_end(name: str, end: str) -> None:
    """The function is cancelled, and commits nothing."""
    total = Total()
    async with Served.at(getattr(total, name)) as served, served.wire() as wire:
        await wire.send(POST, chunked(b"1\n", b"2\n"))
        await until(lambda: total.seen == 2)
        if end == "abort":
            wire.writer.transport.abort()
        elif end == "half":
            wire.writer.write_eof()
        else:
            await wire.send("xyz\r\n")
        await until(total.over.is_set)
        assert total.commits == []


@pytest.mark.parametrize("name", ["run", "run_sync"])
async def test_H015_a_reset_behind_the_end_of_a_stream_cancels(name: str) -> None:
    """Some clients of HTTP/2 end a stream and reset it a moment later when they cancel (R-109)."""
    total = Total()
    riff = {"settle_s": 1.0}  # client and server share a loop, so a busy machine delays both
    async with Served.at(getattr(total, name), riff=riff) as served, served.wire() as wire:
        h2 = Http2(wire)
        await h2.begin({"content-type": LINES, "accept": LINES})
        h2.connection.send_data(1, b"1\n2\n")
        await h2.flush()
        await until(lambda: total.seen == 2)
        h2.connection.end_stream(1)
        await h2.flush()
        await asyncio.sleep(0.002)
        h2.connection.reset_stream(1, 8)
        await h2.flush()
        await until(total.over.is_set)
        assert total.commits == []


async def test_H002_a_cut_response_resets_its_stream() -> None:
    """And no other of the connection."""

    class Cut:
        async def answer(self, exchange: Exchange) -> None:
            exchange.begin(ResponseHead(200, ()))
            exchange.write(b"half")
            await asyncio.sleep(0.01)
            exchange.cut()

    async with (
        Served.at(double, handler=lambda path: Cut() if path == "/cut" else None) as served,
        served.wire() as wire,
    ):
        h2 = Http2(wire)
        await h2.begin({":path": "/cut"})
        h2.connection.end_stream(1)
        await h2.flush()
        await h2.until(StreamReset)
        await h2.begin({"content-type": LINES, "accept": LINES}, stream=3)
        h2.connection.send_data(3, b"4\n", end_stream=True)
        await h2.flush()
        assert (await h2.until(DataReceived)).data == b"8\n"


class Http2:
    """A raw client of HTTP/2."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.connection = H2Connection()

    async def begin(self, headers: dict[str, str], *, stream: int = 1) -> None:
        if stream == 1:
            self.connection.initiate_connection()
        fields = {":method": "POST", ":path": "/", ":scheme": "http", ":authority": "localhost", **headers}
        self.connection.send_headers(stream, list(fields.items()))
        await self.flush()

    async def flush(self) -> None:
        await self.wire.send(self.connection.data_to_send())

    async def until(self, kind: type) -> Any:
        while True:
            for event in self.connection.receive_data(await self.wire.reader.read(65536)):
                if isinstance(event, kind):
                    return event
            await self.flush()


@BOTH
async def test_H012_an_error_behind_the_first_item_is_an_item(http2: bool) -> None:
    """The response ends as it should; before the first item there is a status."""

    def inverse(xs: Iterator[int]) -> Iterator[float]:
        for x in xs:
            yield 1 / x

    async with Served.at(inverse) as served, served.client(http2=http2) as client:
        headers = {"Content-Type": LINES, "Accept": LINES}
        response = await client.post("/", content=b"2\n0\n", headers=headers)
        first, last = response.text.splitlines()
        assert (response.status_code, first) == (200, "0.5")
        assert "ZeroDivisionError" in json.loads(last)["error"]["detail"]
        assert (await client.post("/", content=b"0\n", headers=headers)).status_code == 500


@BOTH
async def test_H004_a_client_that_leaves_ends_an_endless_function(http2: bool) -> None:
    """Its finally runs: the connection ends, or the stream is reset."""
    over = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            over.set()

    async with Served.at(endless) as served, served.wire() as wire:
        if http2:
            h2 = Http2(wire)
            await h2.begin({"accept": EVENTS})
            h2.connection.end_stream(1)
            await h2.flush()
            await h2.until(DataReceived)
            h2.connection.reset_stream(1, 8)
            await h2.flush()
        else:
            await wire.send(f"{HEAD}Accept: {EVENTS}\r\nContent-Length: 0\r\n\r\n")
            await wire.reader.readuntil(b"data: 1\n")
            wire.writer.transport.abort()
        async with asyncio.timeout(5):
            await over.wait()


async def test_H004_a_client_that_does_not_read_holds_the_function() -> None:
    """What waits for it is bounded."""
    given = 0
    is_over = False

    async def endless() -> AsyncIterator[str]:
        nonlocal given, is_over
        try:
            while True:
                given += 1
                yield "x" * 10_000
        finally:
            is_over = True

    settings = HttpSettings(write_s=0.5)
    async with Served.at(endless, settings=settings) as served, served.wire() as wire:
        wire.reader._limit = 1
        await wire.send(f"{HEAD}Accept: {LINES}\r\nContent-Length: 0\r\n\r\n")
        await until(lambda: is_over)
        assert given < 3_000  # 30 MB, most of it in the buffers of the system


async def test_H013_a_quiet_stream_has_a_head_and_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser's onopen comes although the function has nothing to say yet."""
    monkeypatch.setattr("invoker.transports.http.streamed.HEAD_S", 0.02)
    monkeypatch.setattr("invoker.transports.http.streamed.HEARTBEAT_S", 0.02)
    go = asyncio.Event()

    async def quiet() -> AsyncIterator[int]:
        await go.wait()
        yield 1

    async with Served.at(quiet) as served, served.wire() as wire:
        await wire.send(f"{HEAD}Accept: {EVENTS}\r\nContent-Length: 0\r\n\r\n")
        await wire.reader.readuntil(b":\n\n")
        await wire.reader.readuntil(b":\n\n")
        go.set()
        rest = await wire.reader.readuntil(b"0\r\n\r\n")
        assert b"id: 1\ndata: 1\n\n" in rest
        assert b"event: end" in rest


async def test_H016_a_slow_body_of_a_stream_is_waited_for() -> None:
    """Somebody types; a body that is one value has a time limit all the same."""
    settings = HttpSettings(body_s=0.05, body_bytes_per_s=1e9)
    async with Served.at(double, settings=settings) as served:
        async with served.wire() as wire:
            await wire.send(POST)
            await asyncio.sleep(0.2)
            await wire.send(chunked(b"1\n"), b"0\r\n\r\n")
            assert b"2\n" in await wire.reader.readuntil(b"0\r\n\r\n")
        async with served.wire() as wire:
            await wire.send(POST.replace(f"Content-Type: {LINES}", "Content-Type: application/json"))
            assert (await wire.answer())[0] == 408


async def test_R154_a_stream_that_takes_too_long_ends_with_an_error() -> None:
    """As an item if the client has had some."""

    async def slow() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(60)

    async with Served.at(slow, riff={"timeout_s": 0.2}) as served:
        response = await served.post(Accept=LINES)
        first, last = response.text.splitlines()
        assert first == "1"
        assert json.loads(last)["error"]["status"] == 504


async def test_H007_events_of_a_safe_function() -> None:
    """By GET, as EventSource asks for them."""

    @function(safe=True)
    def count(n: int = 2) -> Iterator[int]:
        yield from range(n)

    async with Served.at(count) as served, served.client() as client:
        response = await client.get("/count?n=3", headers={"Accept": EVENTS})
        assert response.headers["content-type"] == EVENTS
        assert [line for line in response.text.split("\n") if line.startswith("data: ")] == [
            "data: 0",
            "data: 1",
            "data: 2",
            "data: {}",
        ]
        again = await client.get("/count", headers={"Accept": EVENTS, "Last-Event-ID": "2"})
        assert (again.status_code, again.content) == (204, b"")
        head = await client.head("/count", headers={"Accept": EVENTS})
        assert (head.status_code, head.headers["content-type"], head.content) == (200, EVENTS, b"")
        assert (await client.get("/count?n=1")).text == "0\n"


async def test_R154_a_draining_process_ends_its_streams() -> None:
    """New ones are refused, and the one that runs is told why it ends."""
    async with Served.at(double) as served, served.wire() as wire:
        await wire.send(POST, chunked(b"1\n"))
        await wire.reader.readuntil(b"2\n\r\n")
        served.driver.engine.is_draining = True
        assert (await served.post(b"1\n", Accept=LINES, Content_Type=LINES)).status_code == 503
        assert not await served.driver.drain(0.05)
        assert b'"status":503' in await wire.reader.readuntil(b"0\r\n\r\n")
