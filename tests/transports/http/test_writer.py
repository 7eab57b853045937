"""`invoker.transports.http.writer`: streamed responses of HTTP/1.1, on a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from invoker.core.http import BodyChunk, Response, ResponseHead
from invoker.transports.http.exchange import Exchange
from tests.transports.served import Served, until

GET = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD = ResponseHead(200, (("Content-Type", "text/plain"),))

Answer = Callable[[Exchange], Awaitable[Response | None]]


async def echo(x: bytes) -> bytes:
    return x


class StoreChanged:
    """A handler that answers as a test says."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def serving(answer: Answer, **settings: float) -> object:
    return Served.at(echo, handler=lambda path: StoreChanged(answer) if path == "/x" else None, **settings)


async def two_bursts(exchange: Exchange) -> None:
    exchange.begin(HEAD)
    exchange.write(b"one ")
    exchange.write(b"two ")
    exchange.write(b"and ")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    exchange.write(b"three")
    exchange.end()


async def test_H001_pieces_leave_in_chunks_and_the_connection_stays() -> None:
    """The first at once, then all of a turn in one; the next request of the connection is answered."""
    async with serving(two_bursts) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        for _ in range(2):
            await wire.send(GET)
            head = await wire.reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"transfer-encoding: chunked" in head
            assert b"content-length" not in head
            assert b"x-content-type-options: nosniff" in head
            assert await wire.reader.readuntil(b"0\r\n\r\n") == b"4\r\none \r\n8\r\ntwo and \r\n5\r\nthree\r\n0\r\n\r\n"


async def test_H001_http_1_0_has_no_chunks() -> None:
    """The end of the connection is the end of the body."""
    async with serving(two_bursts) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        await wire.send("GET /x HTTP/1.0\r\n\r\n")
        head, _, body = (await wire.ended()).partition(b"\r\n\r\n")
        assert b"connection: close" in head
        assert b"transfer-encoding" not in head
        assert body == b"one two and three"


async def test_a_head_has_no_body() -> None:
    """The pieces of an answer to HEAD are dropped, and no last chunk is written."""
    async with serving(two_bursts) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        await wire.send(
            GET.replace("GET", "HEAD"), "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        first, _, rest = (await wire.ended()).partition(b"\r\n\r\n")
        assert first.startswith(b"HTTP/1.1 200")
        assert rest.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("version", ["1.1", "1.0"])
async def test_H002_a_cut_response_does_not_look_like_its_end(version: str) -> None:
    """HTTP/1.1 has no last chunk then, and HTTP/1.0 a reset connection."""

    async def cut(exchange: Exchange) -> None:
        exchange.begin(HEAD)
        exchange.write(b"half")
        await asyncio.sleep(0)
        exchange.cut()

    async with serving(cut) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        await wire.send(GET.replace("1.1", version))
        if version == "1.1":
            data = await wire.ended()
            assert data.endswith(b"4\r\nhalf\r\n")
        else:
            with pytest.raises(ConnectionResetError):
                await wire.reader.read(-1)


async def test_H002_a_handler_that_forgets_to_end_cuts() -> None:
    """A fault of ours is not taken for the end of the function."""

    async def forget(exchange: Exchange) -> None:
        exchange.begin(HEAD)
        exchange.write(b"half")
        await asyncio.sleep(0)

    async with serving(forget) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        await wire.send(GET)
        assert not (await wire.ended()).endswith(b"0\r\n\r\n")


async def test_H003_the_body_comes_while_the_response_leaves() -> None:
    """Each piece is answered before the next one is sent."""

    async def each(exchange: Exchange) -> None:
        exchange.is_stream = True
        await exchange.read()
        exchange.begin(HEAD)
        while (chunk := await exchange.read()) is not None:
            assert isinstance(chunk, BodyChunk)
            exchange.write(chunk.payload.upper())
        exchange.end()

    async with serving(each) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        await wire.send(POST)
        await wire.reader.readuntil(b"\r\n\r\n")
        for word in (b"abc", b"de"):
            await wire.send(b"%x\r\n%b\r\n" % (len(word), word))
            assert await wire.reader.readuntil(word.upper() + b"\r\n")
        await wire.send(b"0\r\n\r\n")
        assert await wire.reader.readuntil(b"0\r\n\r\n") == b"0\r\n\r\n"


async def test_H004_who_reads_slowly_is_waited_for_and_then_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler waits for room, holds little meanwhile, and hears that the client has left."""
    written = 0
    over = asyncio.Event()

    async def endless(exchange: Exchange) -> None:
        nonlocal written
        exchange.begin(HEAD)
        try:
            while not exchange.is_gone:
                written += 65536
                if not exchange.write(bytes(65536)):
                    await exchange.room()
        finally:  # its task is cancelled
            over.set()

    from invoker.transports.http.exchange import HttpSettings

    async with serving(endless, settings=HttpSettings(write_s=0.3)) as served, served.wire() as wire:  # type: ignore[attr-defined,arg-type]
        wire.reader._limit = 1  # it stops reading at once
        await wire.send(GET)
        await over.wait()
        assert 65536 < written < 32 << 20
        await until(lambda: not served.transport.connections.open)


async def test_H004_a_client_that_leaves_ends_the_wait() -> None:
    """Whoever waits for room is told, and its request is cancelled."""
    waits, ended = asyncio.Event(), asyncio.Event()

    async def endless(exchange: Exchange) -> None:
        exchange.begin(HEAD)
        try:
            while not exchange.is_gone:
                if not exchange.write(bytes(65536)):
                    waits.set()
                    await exchange.room()
        finally:
            ended.set()

    async with serving(endless) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        wire.reader._limit = 1
        await wire.send(GET)
        await waits.wait()
        wire.writer.transport.abort()
        await ended.wait()
        await until(lambda: not served.transport.connections.open)


@pytest.mark.parametrize("how", ["the client ends its direction", "the transport aborts"])
async def test_H002_http_1_0_sees_a_reset_whatever_breaks_its_response_off(how: str) -> None:
    """Since the end of the connection would be that of the body."""

    async def answer(exchange: Exchange) -> None:
        exchange.begin(HEAD)
        exchange.write(b"half")
        await asyncio.Event().wait()

    async with serving(answer) as served, served.wire() as wire:  # type: ignore[attr-defined]  # it is a Served
        await wire.send("POST /x HTTP/1.0\r\nContent-Length: 5\r\n\r\n1")
        await wire.reader.readuntil(b"half")
        if how == "the transport aborts":
            for one in list(served.transport.connections.open):
                one.abort()
        else:
            wire.writer.write_eof()
        with pytest.raises(ConnectionResetError):
            await wire.reader.read()
