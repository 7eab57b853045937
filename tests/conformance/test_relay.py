"""The relay passes bytes on, and cuts connections without a word."""

from __future__ import annotations

import asyncio
import contextlib

from invoker_conformance.relay import relay


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Give back a line at a time."""
    while line := await reader.readline():
        writer.write(line)
    writer.close()


async def test_it_relays_until_it_is_severed() -> None:
    """After that the client's connection is reset or at its end."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, relay("127.0.0.1", server.sockets[0].getsockname()[1]) as (port, sever):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        sever()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_nobody_behind_it() -> None:
    """A client of a relay to nowhere sees the end."""
    async with relay("127.0.0.1", 1) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(2.0):
            assert await reader.read() == b""
        writer.close()
