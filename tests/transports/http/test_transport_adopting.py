"""`invoker.transports.http.transport`: connections that somebody else has accepted."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest

from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.h1 import Http1
from tests.transports.served import Served, Wire, until

POST = "POST / HTTP/1.1\r\nHost: localhost\r\n"


async def echo(x: bytes) -> bytes:
    return x


async def adopted(served: Served, data: bytes) -> Wire:
    """A connection that came to the transport with what was read of it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        sock, _ = listener.accept()
    sock.setblocking(False)
    served.transport.adopt(sock, data)
    return Wire(reader, writer)


@pytest.mark.parametrize(
    "data",
    [b"", b"POST / HT", POST.encode() + b"Content-Length: 3\r\n\r\na", f"{POST}Content-Length: 3\r\n\r\nabc".encode()],
)
async def test_an_adopted_connection_is_served_like_any_other(data: bytes) -> None:
    """From what was read of it on; it counts, and it is kept."""
    request = f"{POST}Content-Length: 3\r\n\r\nabc".encode()
    async with Served.at(echo) as served:
        wire = await adopted(served, data)
        await wire.send(request[len(data) :])
        assert (await wire.answer())[::2] == (200, b"abc")
        assert len(served.transport.connections.open) == len(served.transport.connections.idle) == 1
        await wire.send(request)
        assert (await wire.answer())[::2] == (200, b"abc")
        wire.writer.close()
        await until(lambda: not served.transport.connections.open)


async def test_an_adopted_connection_idles_as_long_as_any_other() -> None:
    """Its time begins when it comes."""
    async with Served.at(echo, settings=HttpSettings(idle_s=0.1)) as served:
        wire = await adopted(served, b"POST / HT")
        await wire.ended()
        wire.writer.close()


async def test_H173_an_adopted_connection_is_not_ended_to_make_room_for_itself() -> None:
    """Its request was read before it came, so its socket has nothing more, while those of the others have."""
    async with Served.at(echo) as served:
        connections = served.transport.connections
        others = [await adopted(served, b"") for _ in range(2)]
        await until(lambda: len(connections.idle) == len(others))
        connections.most = 1
        for one in connections.idle:
            cast(Http1, one)._read_control.shut()
        for wire in others:
            await wire.send(b"P")
        wire = await adopted(served, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await wire.answer())[0] == 200
        assert connections.evict()
        assert await wire.ended() == b""
        for one in (*others, wire):
            one.writer.close()


async def test_a_transport_that_has_stopped_adopts_nobody() -> None:
    """It closes the socket."""
    async with Served.at(echo) as served:
        await served.transport.stop(0)
        wire = await adopted(served, b"")
        assert await wire.ended() == b""
        wire.writer.close()
