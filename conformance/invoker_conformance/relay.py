"""A TCP relay in front of a target, which can stop its connections silently, like a network failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

_CHUNK = 64 * 1024


@asynccontextmanager
async def relay(host: str, port: int) -> AsyncIterator[tuple[int, Callable[[], None]]]:
    """Relay a loopback port to an address.

    Yields:
        The port, and a function that stops every connection in both directions.
    """
    writers: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(_CHUNK):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward_reader, onward_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()  # the client sees the end of the connection, as without the relay
            return
        writers.extend((writer, onward_writer))
        await asyncio.gather(pump(reader, onward_writer), pump(onward_reader, writer))

    def sever() -> None:
        for writer in writers:
            writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], sever
    finally:
        sever()
        server.close()
        await server.wait_closed()
