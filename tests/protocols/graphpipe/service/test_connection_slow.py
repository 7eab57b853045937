"""`connection`: clients that send slowly, or take slowly, or take nothing."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

import numpy as np

from invoker.errors import Overloaded
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask, values
from tests.protocols.graphpipe.service.places import REQUEST, opened
from tests.protocols.graphpipe.service.test_framed import framed, read_one
from tests.transports.models import exchanged
from tests.transports.served import until


async def test_G014_dripping_does_not_help() -> None:
    """A byte now and then is too slow; what comes fast enough is served, however long it takes."""
    async with opened(None, body_s=0.1, bytes_per_s=1e6) as place:
        reader, writer = await place.connect()
        ended = asyncio.ensure_future(reader.read())
        for at in range(len(REQUEST)):
            writer.write(framed(REQUEST)[at : at + 1])
            if (await asyncio.wait([ended], timeout=0.03))[0]:
                break
        with suppress(ConnectionResetError):  # by a byte that was on its way when the connection was closed
            assert await ended == b""
    async with opened(None, body_s=0.1, bytes_per_s=120 / SLOW) as place:
        reader, writer = await place.connect()
        for at in range(0, len(REQUEST) + 4, 30):  # several times as fast as it has to be
            writer.write(framed(REQUEST)[at : at + 30])
            await asyncio.sleep(0.15)
        assert values(await read_one(reader)) == [[[2.0, 4.0]]]


async def test_who_does_not_take_a_response_is_let_go() -> None:
    """What the system holds for it is full; the inference is over by then."""
    async with opened(None, write_s=0.1) as place:
        _, writer = await place.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(framed(ask(np.zeros(6_000_000, "f4"))))
        await until(lambda: place.count == 1)
        await until(lambda: place.count == 0)
        assert not place.inferences.driver.engine.running


async def test_who_takes_a_response_slowly_gets_all_of_it() -> None:
    """It may take longer altogether than a part of it may; also at the end, behind which the connection ends."""
    rows = np.arange(5_000_000, dtype="f4")
    async with opened(None, write_s=0.4) as place:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            sock.setblocking(False)
            host, _, port = place.address.rpartition(":")
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sock, (host, int(port)))
            await loop.sock_sendall(sock, framed(ask(rows)))
            sock.shutdown(socket.SHUT_WR)
            began, got = loop.time(), bytearray()
            while part := await loop.sock_recv(sock, 1 << 20):
                got += part
                await asyncio.sleep(len(part) / 2e7)
            assert loop.time() - began > 0.8
    (size,) = struct.unpack_from("<I", got)
    assert len(got) == size + 4
    assert np.array_equal(np.float32(values(bytes(got[4:]))[0]), rows * 2)


async def test_the_connection_ends_whose_client_takes_nothing_when_memory_runs_out() -> None:
    """Another one is served."""
    async with opened(None) as place:
        _, writer = await place.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(framed(ask(np.zeros(6_000_000, "f4"))))
        memory = place.inferences.driver.engine.memory
        await until(lambda: memory.unread == 1)
        memory.most_bytes = 30_000_000
        share = memory.share()
        with suppress(Overloaded):
            share.grow(25_000_000)
        await until(lambda: place.count == 0)
        share.close()
        other, ask_other = await place.connect()
        assert values(await exchanged(other, ask_other, REQUEST)) == [[[2.0, 4.0]]]
