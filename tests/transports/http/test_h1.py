"""`invoker.transports.http.h1`: heads that are refused, what is read ahead, and how connections end."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import pytest

from invoker.core.http import Response
from invoker.errors import Status
from invoker.transports.http.exchange import Exchange
from invoker.transports.http.h1 import Http1
from invoker.transports.http.request import HIGH_BYTES
from tests.conftest import SLOW
from tests.transports.served import Served, until


async def echo(x: bytes) -> bytes:
    return x


# Heads that somebody on the way may have understood otherwise

POST = "POST / HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = f"{POST}Content-Length: 6\r\n\r\nhidden"


class Noted:
    """A function that keeps what it is called with."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    async def run(self, x: bytes) -> bytes:
        self.calls.append(x)
        return x


@pytest.mark.parametrize(
    "head",
    [
        f"{POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        f"{POST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "post / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        "PoST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        "get /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        f"{POST}Content-Length: 1\r\n\r\nxPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_ambiguous_heads_are_refused_and_nothing_behind_them_runs(head: str) -> None:
    """Two lengths, methods in lower case, a preface in the middle: 400, and the connection ends."""
    noted = Noted()
    async with Served.at(noted.run) as served, served.wire() as wire:
        await wire.send(head, HIDDEN * 50)
        answers = await wire.ended()
        assert b"HTTP/1.1 400 " in answers
        assert answers.count(b"HTTP/1.1 ") == 1 + head.count("PRI")
        assert b"hidden" not in answers
        assert noted.calls == [b"x"] * head.count("PRI")
        assert (await served.post(b"x")).content == b"x"


async def test_nobody_comes_to_http_2_by_upgrade() -> None:
    """RFC 9113 gave it up, and a proxy that lets it pass sees nothing of what follows: it is answered by HTTP/1.1."""
    async with Served.at(echo) as served, served.wire() as wire:
        upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
        for _ in range(2):
            await wire.send(f"GET /livez HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n")
            assert (await wire.answer())[::2] == (200, b"ok\n")


# What is read, and when


class Gate:
    """A function that answers when it is let go."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.calls = 0

    async def run(self, x: bytes) -> bytes:
        self.calls += 1
        self.started.set()
        await self.go.wait()
        return x


async def test_R155_reading_ahead_is_bounded() -> None:
    """While a request is under way, its client can send only so much behind it."""
    gate = Gate()
    async with Served.at(gate.run) as served, served.wire() as wire:
        await wire.send(f"{POST}Content-Length: 1\r\n\r\nx")
        await gate.started.wait()
        (connection,) = served.transport.connections.open
        one = f"{POST}Content-Length: 1000\r\n\r\n".encode() + bytes(1000)
        wire.writer.write(one * 2_000)
        await until(lambda: connection._read_control.is_shut)  # type: ignore[attr-defined]  # it is an Http1
        assert len(connection._data) <= HIGH_BYTES + (256 << 10)  # type: ignore[attr-defined]  # one read more
        assert gate.calls == 1
        gate.go.set()
        assert (await wire.answer())[2] == b"x"
        for _ in range(2_000):
            assert (await wire.answer())[0] == 200
    assert gate.calls == 2_001


async def test_a_body_that_nobody_reads_is_not_taken() -> None:
    """Its sender waits, and the memory of the process is not filled."""
    wait = asyncio.Event()

    class Slow:
        async def answer(self, exchange: Exchange) -> Response:
            await wait.wait()
            body = await exchange.whole(1 << 30)
            return Response(200, (), b"%d" % len(body or b""))

    async with Served.at(echo, handler=lambda _: Slow()) as served, served.wire() as wire:
        size = 32 << 20
        wire.writer.write(f"{POST}Content-Length: {size}\r\n\r\n".encode() + bytes(size))
        await until(lambda: any(one._read_control.is_shut for one in served.transport.connections.open))  # type: ignore[attr-defined]
        (connection,) = served.transport.connections.open
        assert connection._request.unread <= HIGH_BYTES + (256 << 10)  # type: ignore[attr-defined]  # one read more
        wait.set()
        assert (await wire.answer())[2] == b"%d" % size


async def test_others_have_a_turn_between_two_requests_of_one_connection() -> None:
    """However many came in one read."""
    turns, is_over = 0, False

    async def count() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
        counting = asyncio.create_task(count())
        for _ in range(500):
            await wire.answer()
        is_over = True
        await counting
    assert turns >= 500


async def test_H173_a_request_that_came_with_another_one_is_not_ended_for_others() -> None:
    """It waits for its turn, and its socket has nothing more to read."""
    tried: list[bool] = []
    finish = Http1._next

    def next_(connection: Http1) -> None:
        finish(connection)
        tried.append(connection._connections.evict())

    async with Served.at(echo) as served, served.wire() as wire:
        with patch.object(Http1, "_next", next_):
            await wire.send(f"{POST}Content-Length: 1\r\n\r\nx" * 2)
            assert (await wire.ended()).count(b"HTTP/1.1 200 OK\r\n") == 2
        assert tried == [False, True]


async def test_a_head_is_read_however_it_is_cut() -> None:
    """Byte by byte, and with a part of the next one."""
    one = f"{POST}Content-Length: 3\r\n\r\nabc".encode()
    async with Served.at(echo) as served, served.wire() as wire:
        for size in (1, 2, 7, len(one) + 5):
            stream = one * 3
            for at in range(0, len(stream), size):
                await wire.send(stream[at : at + size])
                await asyncio.sleep(0)
            assert [(await wire.answer())[2] for _ in range(3)] == [b"abc"] * 3


@pytest.mark.parametrize(
    "start", [b"POST / HTTP/1.1\nHost: a\n\n", b"\x16\x03\x01\x02", b"\r\n", b"P\n", b"x" * 20_000]
)
async def test_what_cannot_become_a_head_is_refused_at_once(start: bytes) -> None:
    """Nobody waits for the rest of it."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send(start)
        assert (await wire.ended()).startswith((b"HTTP/1.1 400 Bad Request\r\n", b"HTTP/1.1 431 "))


@pytest.mark.parametrize("chunks", [b"zz\r\n", b"1\r\nxy\r\n", b"1\r\nx\n0\r\n\r\n"])
async def test_a_bad_chunk_ends_its_request(chunks: bytes) -> None:
    """With 400, whether it comes with the head or behind it, and nothing runs."""
    noted = Noted()
    async with Served.at(noted.run) as served:
        for cut in (True, False):
            async with served.wire() as wire:
                await wire.send(f"{POST}Transfer-Encoding: chunked\r\n\r\n")
                if cut:
                    await until(lambda: bool(served.driver.conversations))
                await wire.send(chunks, HIDDEN)
                answers = await wire.ended()
                assert (answers[:13], answers.count(b"HTTP/1.1 ")) == (b"HTTP/1.1 400 ", 1)
            await until(lambda: not served.transport.connections.open)
    assert noted.calls == []


async def test_a_bad_chunk_behind_an_answer_just_ends_the_connection() -> None:
    """There is one response to a request."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send("POST /nope HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        assert (await wire.answer())[0] == 404
        await wire.send("zz\r\n")
        assert await wire.ended() == b""


async def test_the_rest_of_a_refused_body_is_dropped_and_the_connection_goes_on() -> None:
    """If it comes in time."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send("POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        assert (await wire.answer())[0] == 404
        await wire.send(bytes(1_000_000), f"{POST}Content-Length: 1\r\n\r\nx")
        assert (await wire.answer())[::2] == (200, b"x")


@pytest.mark.parametrize("count", [1, 3])
async def test_R155_a_client_may_end_its_direction_behind_its_requests(count: int) -> None:
    """What is quick is answered, then the connection ends; what is only a part of a request is dropped."""
    for rest in ("", "POST / HT", f"{POST}Content-Length: 2\r\n\r\nx"):
        async with Served.at(echo) as served, served.wire() as wire:
            await wire.send(f"{POST}Content-Length: 1\r\n\r\nx" * count + rest)
            wire.writer.write_eof()
            assert (await wire.ended()).count(b"HTTP/1.1 200 OK\r\n") == count


async def test_a_client_that_leaves_within_a_head_is_forgotten_at_once() -> None:
    """Nothing more can come of it, so nothing is waited for."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send("POST / HTTP/1.1\r\nHost: lo")
        await until(lambda: served.transport.connections.open)
        began = asyncio.get_running_loop().time()
        wire.writer.close()
        await until(lambda: not served.transport.connections.open)
        assert asyncio.get_running_loop().time() - began < 0.5 * SLOW


async def test_R154_a_client_that_ends_its_direction_has_left() -> None:
    """A function that takes longer is cancelled."""
    gate = Gate()
    async with Served.at(gate.run) as served, served.wire() as wire:
        await wire.send(f"{POST}Content-Length: 1\r\n\r\nx")
        await gate.started.wait()
        wire.writer.write_eof()
        assert await wire.ended() == b""
        await until(lambda: not served.driver.engine.running)
        assert served.driver.engine.counters.finished == {Status.CANCELLED: 1}


async def test_a_client_that_ends_its_direction_gets_the_rest_of_its_response() -> None:
    """It has begun, and nobody is there to be cancelled."""

    async def large(x: bytes) -> bytes:
        return bytes(16 << 20)

    async with Served.at(large) as served, served.wire() as wire:
        await wire.send(f"{POST}Content-Length: 1\r\n\r\nx")
        head = await wire.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 16777216" in head
        wire.writer.write_eof()
        assert len(await wire.ended()) == 16 << 20


async def test_a_handler_that_fails_is_500(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of it reaches the peer, and the log has it."""

    class Faulty:
        async def answer(self, exchange: Exchange) -> Response:
            raise ZeroDivisionError("secret")

    async with Served.at(echo, handler=lambda _: Faulty()) as served, served.wire() as wire:
        await wire.send(f"{POST}Content-Length: 1\r\n\r\nx")
        answer = await wire.ended()
    assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"secret" not in answer
    assert "ZeroDivisionError" in caplog.text
