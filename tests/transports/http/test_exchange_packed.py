"""`transports.http.exchange`: packed bodies reach handlers unpacked, whoever carries them, and bombs do not go off."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any

import pytest

from invoker.core.budget import ProcessBudget
from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.errors import InvocationError
from invoker.transports.http.exchange import Exchange, HttpSettings
from tests.conftest import SLOW
from tests.transports.served import Served, until

MIB = 1 << 20
WAYS = ["thread", "loop", "http2"]
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "gzip, deflate": lambda data: zlib.compress(gzip.compress(data)),
    "identity": bytes,
}


def size(x: bytes) -> int:
    return len(x)


async def size_later(x: bytes) -> int:
    return len(x)


def total(x: list[int]) -> int:
    return sum(x)


def serving(ops: str, **about: Any) -> AbstractAsyncContextManager[Served]:
    return Served.at(size if ops == "thread" else size_later, **about)


async def sent(served: Served, ops: str, body: Any, coding: str = "gzip", path: str = "/") -> Any:
    async with served.client(http2=ops == "http2") as client:
        return await client.post(path, content=body, headers={"Content-Encoding": coding})


class Listens:
    """A handler that listens, and keeps what it hears."""

    def __init__(self, *, takes_packed: bool = True, is_stream: bool = False) -> None:
        self.takes_packed = takes_packed
        self.heads: list[RequestHead] = []
        self.sizes: list[int] = []
        self.errors: list[InvocationError] = []
        self.exchange: Exchange
        self.wants = True
        self._is_stream = is_stream

    async def answer(self, exchange: Exchange) -> Response:
        raise AssertionError("it listens")

    def prompt(self, head: RequestHead) -> Callable[[Exchange], Listens]:
        self.heads.append(head)
        return self._begin

    def _begin(self, exchange: Exchange) -> Listens:
        self.exchange = exchange
        exchange.is_stream = self._is_stream
        return self

    def arrived(self, frame: BodyChunk | None) -> bool:
        if frame is None:
            self.exchange.answer(Response(200, (), b"%d" % sum(self.sizes)))
            return True
        self.sizes.append(len(frame.payload))
        return self.wants

    def fail(self, error: InvocationError) -> None:
        self.errors.append(error)
        self.exchange.answer(Response(400, (), str(error).encode()))

    def gone(self) -> None:
        pass


class Reads:
    """A handler that reads, in chunks or as a whole."""

    def __init__(self, read: Callable[[Exchange], Awaitable[int]]) -> None:
        self._read = read

    async def answer(self, exchange: Exchange) -> Response:
        try:
            return Response(200, (), b"%d" % await self._read(exchange))
        except InvocationError as error:
            return Response(400, (), str(error).encode())


async def in_chunks(exchange: Exchange) -> int:
    await exchange.read()
    found = 0
    while (chunk := await exchange.read()) is not None:
        assert isinstance(chunk, BodyChunk)
        found += len(chunk.payload)
    return found


async def as_a_whole(exchange: Exchange) -> int:
    body = await exchange.whole(MIB)
    return -1 if body is None else len(body)


@pytest.mark.parametrize("ops", WAYS)
@pytest.mark.parametrize("coding", sorted(PACK))
async def test_H134_functions_get_packed_bodies_unpacked(ops: str, coding: str) -> None:
    """Short and long ones, sent at once and in chunks; the connection goes on."""
    async with serving(ops) as served, served.client(http2=ops == "http2") as client:
        for length in (0, 5, 300_000):
            packed = PACK[coding](bytes(length))

            async def in_pieces(packed: bytes = packed) -> Any:
                for at in range(0, len(packed), 100):
                    yield packed[at : at + 100]

            for body in (packed, in_pieces()):
                headers = {"Content-Encoding": coding, "Content-Type": "application/octet-stream"}
                got = await client.post("/", content=body, headers=headers)
                assert (got.status_code, got.text) == (200, str(length))


@pytest.mark.parametrize("http2", [False, True])
async def test_H134_a_packed_body_has_its_own_media_type(http2: bool) -> None:
    """Content-Encoding is not the function's business."""
    async with Served.at(total) as served, served.client(http2=http2) as client:
        body = gzip.compress(json.dumps([1, 2, 3]).encode())
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json", "Accept": "application/json"}
        assert (await client.post("/", content=body, headers=headers)).json() == 6


@pytest.mark.parametrize("http2", [False, True])
async def test_H134_a_handler_may_want_its_bodies_as_they_are(http2: bool) -> None:
    """Then it sees the header; else it does not."""
    plain, own = Listens(), Listens(takes_packed=False)
    handlers = {"/plain": plain, "/own": own}
    packed = gzip.compress(bytes(100))
    async with Served.at(size, handler=handlers.get) as served:
        for path, length in (("/plain", 100), ("/own", len(packed))):
            assert (await sent(served, "http2" if http2 else "", packed, path=path)).text == str(length)
    assert (plain.heads[0].value("content-encoding"), own.heads[0].value("content-encoding")) == ("", "gzip")


@pytest.mark.parametrize("ops", WAYS)
async def test_H135_an_unknown_coding_is_415(ops: str) -> None:
    """It says which ones are known; the body is not looked at."""
    async with serving(ops) as served:
        for coding in ("br", "gzip, br", "gzip, gzip, gzip, gzip"):
            got = await sent(served, ops, b"x", coding)
            assert got.status_code == 415
            assert "gzip, deflate" in got.headers["accept-encoding"]
            assert got.text.startswith("Invoker: Unsupported Media Type: ")


@pytest.mark.parametrize("ops", WAYS)
async def test_H136_a_damaged_body_is_400(ops: str) -> None:
    """Cut short, followed by junk, not packed at all, or packed otherwise; the process goes on."""
    whole = gzip.compress(b"some value" * 1000)
    async with serving(ops) as served:
        for body in (b"", whole[:-1], whole[:-5], whole + b"junk", whole + bytes(9), b"plain", zlib.compress(b"value")):
            got = await sent(served, ops, body)
            assert got.status_code == 400, body[:10]
            assert "gzip" in got.text
        assert (await sent(served, ops, whole)).text == "10000"


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize("read", [in_chunks, as_a_whole])
async def test_H136_handlers_that_read_are_told_so(http2: bool, read: Callable[[Exchange], Awaitable[int]]) -> None:
    """As those that listen are."""
    whole = gzip.compress(bytes(200_000))
    async with Served.at(size, handler=lambda _: Reads(read)) as served:
        ops = "http2" if http2 else ""
        assert (await sent(served, ops, whole, path="/x")).text == "200000"
        assert (await sent(served, ops, whole[:-1], path="/x")).text.endswith("the body ends before its gzip does")
        assert "200000" not in (await sent(served, ops, whole + b"junk", path="/x")).text


# Attackers.


@cache
def bomb(mib: int) -> bytes:
    """It takes seconds to pack, so the tests that need one share it."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(mib)), packer.flush()])


BOMBS = {
    "zeros": ("gzip", lambda: bomb(128)),
    "zeros within zeros": ("gzip, gzip", lambda: gzip.compress(bomb(128))),
    "three times": ("gzip, gzip, gzip", lambda: gzip.compress(gzip.compress(bomb(128)))),
    "a thousand members": ("gzip", lambda: bomb(1) * 1000),
    "empty members": ("gzip, gzip", lambda: gzip.compress(gzip.compress(b"", mtime=0) * 1_000_000)),
}


@pytest.mark.parametrize("ops", WAYS)
@pytest.mark.parametrize("kind", sorted(BOMBS))
async def test_H137_bombs_are_refused_at_the_limit_of_bodies(ops: str, kind: str) -> None:
    """As soon as it is reached: nobody unpacks the rest, and others are answered."""
    coding, made = BOMBS[kind]
    body = made()
    async with serving(ops) as served, served.client() as other:
        attack = asyncio.create_task(sent(served, ops, body, coding))
        while not attack.done():
            before = time.perf_counter()
            assert (await other.get("/livez")).status_code == 200
            assert time.perf_counter() - before < 1 * SLOW
        got = await attack
        assert got.status_code == (400 if kind == "empty members" else 413)
        assert ("expands too much" if kind == "empty members" else "--max-message-bytes") in got.text
        assert served.driver.engine.memory.held == 0


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize("read", [None, in_chunks])
async def test_H137_what_is_unpacked_counts_against_the_memory_of_the_process(
    http2: bool, read: Callable[[Exchange], Awaitable[int]] | None
) -> None:
    """A body of few bytes is refused when it has become more than there may be."""
    handler = Listens() if read is None else Reads(read)
    async with Served.at(size, handler=lambda _: handler) as served:
        served.driver.engine.memory = ProcessBudget(8 * MIB)
        got = await sent(served, "http2" if http2 else "", bomb(64), path="/x")
        assert got.status_code == 400
        assert "INVOKER_MEMORY_BYTES" in got.text
        if isinstance(handler, Listens):
            assert sum(handler.sizes) <= 9 * MIB
        assert served.driver.engine.memory.held == 0


@pytest.mark.parametrize("http2", [False, True])
async def test_H137_a_listener_that_waits_is_given_no_more(http2: bool) -> None:
    """What it has not asked for stays packed; when it asks, the rest comes, and others have their turns in between."""
    handler = Listens(is_stream=True)
    handler.wants = False
    async with Served.at(size, handler=lambda _: handler) as served, served.client() as other:
        attack = asyncio.create_task(sent(served, "http2" if http2 else "", bomb(64), path="/x"))
        await until(lambda: bool(handler.sizes))
        assert (await other.get("/livez")).status_code == 200
        assert len(handler.sizes) == 1
        handler.wants = True
        handler.exchange.ask()
        assert (await attack).text == str(64 * MIB)
        assert max(handler.sizes) <= 64 * 1024


@pytest.mark.parametrize("http2", [False, True])
async def test_H137_a_slow_body_gets_time_for_what_was_sent_only(http2: bool) -> None:
    """A thousand bytes that become a million are still a thousand, for the slowest upload that is tolerated."""
    handler = Listens()
    settings = HttpSettings(body_s=0.2, body_bytes_per_s=100_000)

    async def slowly() -> Any:
        packed = bomb(16)
        yield packed[:8192]  # 8 MiB of zeros, which would give it 80 s
        await handler_failed()
        yield packed[8192:]

    async def handler_failed() -> None:
        await until(lambda: bool(handler.errors))

    async with Served.at(size, handler=lambda _: handler, settings=settings) as served:
        got = await sent(served, "http2" if http2 else "", slowly(), path="/x")
        assert "bytes of the body came in time" in got.text
        assert sum(handler.sizes) > MIB


async def test_H137_packed_bodies_drip_in_byte_by_byte() -> None:
    """They are unpacked as they come."""
    packed = gzip.compress(b"value" * 20)
    async with serving("loop") as served, served.wire() as wire:
        head = (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Type: application/octet-stream\r\n"
        )
        await wire.send(head, f"Content-Length: {len(packed)}\r\n\r\n")
        for one in packed:
            await wire.send(bytes([one]))
            await asyncio.sleep(0)
        status, _, body = await wire.answer()
        assert (status, body) == (200, b"100")
