"""`transports.http.app`: requests that do not come to a good end: limits, deadlines, drains, clients that leave."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest

from invoker.transports.http.exchange import HttpSettings
from tests.transports.served import Served, until

JSON = "application/json"


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


async def test_a_body_that_comes_too_slowly_is_408() -> None:
    """Slow bodies do not hold connections for ever."""
    async with Served.at(square, settings=HttpSettings(body_s=0.05)) as served, served.wire() as wire:
        await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
        status, _, body = await wire.answer()
    assert status == 408
    assert b"only 1 bytes" in body


async def test_a_client_that_does_not_read_loses_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    """Its response is given up, its invocation is long over."""

    async def large(x: bytes) -> bytes:
        return bytes(64 * 1024 * 1024)

    async with Served.at(large, settings=HttpSettings(write_s=0.1)) as served, served.wire() as wire:
        await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
        with caplog.at_level(logging.WARNING):
            await until(lambda: "did not read its response" in caplog.text)
        assert not served.driver.conversations


@pytest.mark.parametrize("length", [10, 12 << 20])
async def test_a_client_that_reads_slowly_gets_all_of_its_response(length: int) -> None:
    """What is limited is how long a part of it may take."""

    async def large(x: bytes) -> bytes:
        return b"y" * length

    async with Served.at(large, settings=HttpSettings(write_s=1.5)) as served:
        host, _, port = served.address.rpartition(":")
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sock, (host, int(port)))
            request = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"
            await loop.sock_sendall(sock, request)
            got = bytearray()
            while part := await loop.sock_recv(sock, 1 << 20):
                got += part
                await asyncio.sleep(len(part) / 6e6)  # all of it takes longer than `write_s`, a part far less
    assert got.partition(b"\r\n\r\n")[2] == b"y" * length


async def test_a_refused_upload_is_dropped_only_for_a_while() -> None:
    """A client that goes on sending loses its connection after the linger."""
    async with Served.at(square, settings=HttpSettings(linger_s=0.1)) as served, served.wire() as wire:
        await wire.send("POST /nope HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        assert (await wire.answer())[0] == 404
        assert await wire.ended() == b""
