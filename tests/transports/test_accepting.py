"""`invoker.transports.accepting`: connections are accepted, also when descriptors are short."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import socket
import struct
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from invoker.transports.accepting import Acceptor, streaming
from tests.transports.served import until


class Scarce(socket.socket):
    """A listener whose process has `left` descriptors, besides those that the test closes meanwhile."""

    left = 1_000_000
    tries = 0

    def accept(self) -> tuple[socket.socket, object]:
        """Accept one if there is a descriptor."""
        self.tries += 1
        if self.left <= 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        found = super().accept()
        self.left -= 1
        return found


class Transport:
    """An acceptor and what it was asked."""

    def __init__(self, *, evicts: bool = False) -> None:
        self.sock = Scarce()
        self.sock.setblocking(False)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen()
        self.evicted = 0
        self.served = 0
        self._evicts = evicts
        self.acceptor = Acceptor(self.sock, streaming(self.connected), "test", evict=self.evict)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.served += 1
        writer.write(b"x")
        writer.close()

    def evict(self) -> bool:
        self.evicted += 1
        self.sock.left += self._evicts
        return self._evicts


@asynccontextmanager
async def opened(transport: Transport) -> AsyncIterator[Transport]:
    try:
        yield transport
    finally:
        transport.acceptor.close()
        await transport.acceptor.drop()


async def ask(transport: Transport) -> bytes:
    reader, writer = await asyncio.open_connection(*transport.sock.getsockname())
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_connections_are_served() -> None:
    """Many at once, each in a task of its own."""
    async with opened(Transport()) as transport:
        assert await asyncio.gather(*(ask(transport) for _ in range(100))) == [b"x"] * 100
        assert (transport.served, transport.evicted) == (100, 0)


async def test_who_comes_without_descriptors_gets_a_spare(caplog: pytest.LogCaptureFixture, monkeypatch) -> None:
    """Each asks for room; the log has one line for all of them."""
    async with opened(Transport()) as transport:
        closed: list[int] = []

        def close(descriptor: int) -> None:
            closed.append(descriptor)
            transport.sock.left += 1
            real(descriptor)

        real = os.close
        monkeypatch.setattr("invoker.transports.accepting.os.close", close)
        transport.sock.left = 0
        assert [await ask(transport) for _ in range(20)] == [b"x"] * 20
        assert (transport.served, transport.evicted, len(closed)) == (20, 20, 20)
        monkeypatch.undo()
    (record,) = caplog.records
    assert (record.levelno, "test transport" in record.getMessage()) == (logging.WARNING, True)


async def test_where_nothing_can_be_ended_accepting_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not try without end, and goes on when there is a descriptor."""

    def fail(*_: object) -> int:
        raise OSError(errno.EMFILE, "none")

    async with opened(Transport()) as transport:
        for _ in range(8):
            os.close(transport.acceptor._spares.pop())
        monkeypatch.setattr("invoker.transports.accepting.os.open", fail)
        transport.sock.left = 0
        asking = asyncio.create_task(ask(transport))
        await until(lambda: transport.sock.tries == 3)
        assert not asking.done()
        transport.sock.left = 1
        assert await asking == b"x"
        assert transport.sock.tries < 10


async def test_closing_takes_nobody_in_any_more_and_may_be_repeated() -> None:
    """The socket is closed, and so are the spares."""
    async with opened(Transport()) as transport:
        address, spares = transport.sock.getsockname(), list(transport.acceptor._spares)
        transport.acceptor.close()
        transport.acceptor.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        assert transport.sock.fileno() == -1
        for one in spares:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(one)


class Response:
    """What is written, whose end is seen."""

    payload = bytes(1000)


async def test_a_connection_that_is_lost_in_a_write_keeps_nothing_of_what_was_written() -> None:
    """Also without the garbage collector, and though the stream remembers the error."""
    seen: list[weakref.ref[Response]] = []
    client = socket.socket()

    async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        response = Response()
        seen.append(weakref.ref(response))
        writer.write(response.payload)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # a reset, of which the loop has not been told yet
        writer.write(response.payload)

    sock = socket.socket()
    sock.setblocking(False)
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    acceptor = Acceptor(sock, streaming(connected), "test")
    gc.disable()
    try:
        client.connect(sock.getsockname())
        await until(lambda: bool(seen) and seen[0]() is None)
    finally:
        gc.enable()
        acceptor.close()
