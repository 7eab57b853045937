"""`transports.http.streamed`: what is held of bodies that stream in, and the turns that others have meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker.core.budget import STEP_BYTES
from invoker.core.streams import Limits
from invoker.transports.http import readcontrol
from invoker.transports.http import socketconnection as socketline
from invoker.transports.http.asgi import AsgiApp
from tests.attack.sockets import framed, handshake
from tests.transports.served import Served, until

LINES = "application/x-ndjson"
HEAD = (
    f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: {LINES}\r\nAccept: {LINES}\r\n"
    "Transfer-Encoding: chunked\r\n\r\n"
)


async def double(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield 2 * x


async def size(xs: AsyncIterator[str]) -> AsyncIterator[int]:
    async for x in xs:
        yield len(x)


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_H162_a_line_that_does_not_end_is_counted_and_given_back() -> None:
    """Beyond the bytes that nobody counts; the end of the line gives them back, and so does the end of the request."""
    async with Served.at(size) as served, served.wire() as wire:
        memory = served.driver.engine.memory
        await wire.send(HEAD, chunked(b'"' + b"1" * 3 * STEP_BYTES))
        await until(lambda: memory.held >= 3 * STEP_BYTES)
        await wire.send(chunked(b'"\n'))
        await wire.reader.readuntil(b"%d\n" % (3 * STEP_BYTES))
        await until(lambda: memory.held == 0)
        await wire.send(chunked(b"1" * 3 * STEP_BYTES))
        await until(lambda: memory.held >= 3 * STEP_BYTES)
        wire.writer.transport.abort()
        await until(lambda: memory.held == 0)


async def test_H162_a_line_that_does_not_fit_into_the_process_is_refused() -> None:
    """By 503, because the client may try again; nothing is left of it."""
    async with Served.at(double) as served, served.wire() as wire:
        memory = served.driver.engine.memory
        memory.most_bytes = 2 * STEP_BYTES
        await wire.send(HEAD, chunked(b"1" * 4 * STEP_BYTES))
        assert b"503" in await wire.reader.readline()
        await until(lambda: memory.held == 0 and not served.driver.engine.running)


@pytest.mark.parametrize("body", [b"\n", b" \n"])
async def test_H164_others_have_a_turn_within_a_body_of_no_items(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever takes too long is left for the next turn of the loop, piece by piece; nothing is lost."""
    monkeypatch.setattr("invoker.transports.http.streamed._TURN_S", -1.0)
    turns, is_over = 0, False

    async def count() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    async with Served.at(double) as served, served.wire() as wire:
        data = HEAD.encode() + chunked(body * 200_000 + b"4\n")
        counting = asyncio.create_task(count())
        wire.writer.write(data)
        await wire.reader.readuntil(b"8\n")
        is_over = True
        await counting
    assert turns >= len(body) * 200_000 // 4096


async def test_H162_what_is_taken_in_later_turns_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ASGI server may bring much at once."""
    monkeypatch.setattr("invoker.transports.http.streamed._TURN_S", -1.0)
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": b'"' + b"x" * 8 * STEP_BYTES + b'"\n', "more_body": True}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async with Served.at(size) as served:
        memory = served.driver.engine.memory
        headers = [(b"host", b"localhost"), (b"content-type", LINES.encode()), (b"accept", LINES.encode())]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "http_version": "2",
            "headers": headers,
            "server": ("localhost", 80),
            "scheme": "http",
        }
        asking = asyncio.create_task(AsgiApp(served.transport.app)(scope, receive, send))
        await until(lambda: memory.held > 0)
        await until(lambda: any(b"%d\n" % (8 * STEP_BYTES) in one.get("body", b"") for one in sent))
        assert memory.held == 0
        asking.cancel()
        await asyncio.wait([asking])


async def test_H004_a_client_that_reads_late_gets_everything() -> None:
    """The function waits while the client does not read, and goes on when it does."""
    given = 0

    async def much() -> AsyncIterator[str]:
        nonlocal given
        while given < 400:
            given += 1
            yield "x" * 100_000

    async with Served.at(much) as served, served.wire() as wire:
        wire.reader._limit = 1
        head = (
            f"POST / HTTP/1.1\r\nHost: localhost\r\nAccept: {LINES}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        await wire.send(head)
        seen = -1
        while seen != given:
            seen = given
            await asyncio.sleep(0.2)
        assert 0 < given < 400
        wire.reader._limit = 1 << 20
        data = await wire.reader.read(-1)
        assert data.count(b"x" * 50_000) >= 400
        assert data.endswith(b"0\r\n\r\n")


class Held:
    """Gives one value, then no more."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def large(self) -> AsyncIterator[bytes]:
        yield bytes(8 << 20)
        await self.go.wait()


@pytest.mark.parametrize("kind", ["leaves", "takes"])
async def test_a_long_value_on_a_websocket_counts_until_it_is_taken(kind: str) -> None:
    """Or until its peer has left."""
    held = Held()
    async with Served.at(held.large) as served:
        memory = served.driver.engine.memory
        async with served.wire() as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await wire.send(handshake("/large/ws"))
            await until(lambda: memory.held >= 4 << 20)
            if kind == "leaves":
                wire.writer.transport.abort()
            else:
                wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
                while memory.held:
                    assert await wire.reader.read(1 << 20)
            await until(lambda: memory.held == 0)
            held.go.set()


async def deaf(xs: AsyncIterator[str]) -> AsyncIterator[int]:
    await asyncio.sleep(60)
    async for x in xs:
        yield len(x)


async def test_H163_who_ends_a_body_in_its_middle_while_nothing_is_read_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What stands before the end is read then, and counted; nothing of it is kept."""
    monkeypatch.setattr(readcontrol, "_LOOK_S", 0.01)
    async with Served.at(deaf, limits=Limits(high_bytes=100_000)) as served, served.wire() as wire:
        memory = served.driver.engine.memory
        await wire.send(HEAD, *[chunked(b'"%b"\n' % (b"1" * 30_000))] * 8)
        await until(lambda: memory.held > 100_000)
        wire.writer.write_eof()
        await until(lambda: not memory.held and not served.driver.engine.running)


async def test_H052_a_peer_that_leaves_while_nothing_is_read_is_soon_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end stands behind frames that nobody reads, so that only a ping finds out."""
    monkeypatch.setattr(readcontrol, "_LOOK_S", 0.01)
    monkeypatch.setattr(socketline, "_DEAF_S", 0.05)
    async with Served.at(deaf) as served:
        memory = served.driver.engine.memory
        host, _, port = served.address.rpartition(":")
        with socket.create_connection((host, int(port))) as sock:
            sock.setblocking(False)
            await _fill(sock, handshake("/deaf/ws"), framed(0x82, bytes(500_000)))
            assert memory.held
        await until(lambda: not memory.held and not served.driver.engine.running)


async def _fill(sock: socket.socket, head: bytes, item: bytes) -> None:
    """Send until nothing more is taken."""
    left, silences = memoryview(head + item * 100), 0
    while silences < 20:
        try:
            left, silences = left[sock.send(left) :], 0
        except BlockingIOError:
            silences += 1
            await asyncio.sleep(0.01)
    assert left
