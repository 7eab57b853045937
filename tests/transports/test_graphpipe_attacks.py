"""Attacks on the doors of GraphPipe: whoever sends what he should not harms nobody but himself."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.tensors import Code
from invoker.transports.framed import FramedDoor
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask, code_of, values
from tests.transports.doors import until
from tests.transports.models import exchanged, inferring


def double(x: NDArray[Any]) -> NDArray[Any]:
    return x * 2


@asynccontextmanager
async def opened(served: Any = double, **settings: Any) -> AsyncIterator[tuple[FramedDoor, str, int]]:
    """A bare socket on a free port."""
    async with inferring(served, **settings) as inferences:
        door = FramedDoor(inferences, "127.0.0.1:0")
        host, _, port = (await door.start()).rpartition(":")
        try:
            yield door, host, int(port)
        finally:
            await door.stop(0)


def reset(writer: asyncio.StreamWriter) -> None:
    """Leave without a farewell: the peer gets a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("requests", [0, 1, 5])
async def test_G018_a_reset_leaves_nothing_of_a_connection(requests: int) -> None:
    """Whether it was idle, had been answered, or had more under way."""
    async with opened() as (door, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        if requests == 1:
            assert values(await exchanged(reader, writer, ask([1]))) == [[2]]
        for _ in range(requests - 1):
            writer.write(struct.pack("<I", len(ask([1]))) + ask([1]))
        await until(lambda: bool(door._connections))
        reset(writer)
        await until(lambda: not door._connections)


@pytest.mark.parametrize(
    "head", [b"\0\0", struct.pack("<I", 60 << 20), struct.pack("<I", 60 << 20) + bytes(50)], ids=len
)
async def test_G014_a_message_has_to_come_at_a_speed(head: bytes) -> None:
    """What was announced buys no time, only what has come."""
    async with opened(body_s=0.05, bytes_per_s=1000) as (_, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(head)
        async with asyncio.timeout(SLOW):
            assert await reader.read() == b""
        writer.close()


async def test_G014_a_message_that_has_not_begun_may_wait() -> None:
    """An idle connection is kept; so is one whose message comes slowly, and not too slowly."""
    async with opened(body_s=0.05, bytes_per_s=1) as (_, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        await asyncio.sleep(0.1)
        whole = struct.pack("<I", len(ask([1]))) + ask([1])
        for part in (whole[:20], whole[20:]):
            writer.write(part)
            await asyncio.sleep(0.1)
        (size,) = struct.unpack("<I", await reader.readexactly(4))
        assert values(await reader.readexactly(size)) == [[2]]
        writer.close()


@pytest.mark.parametrize("fault", ["it takes too long", "it fails"])
async def test_G073_G079_rows_of_no_bytes_are_fed_no_longer_than_the_function_runs(fault: str) -> None:
    """There can be more of them than anybody could count; others are answered meanwhile."""

    @function(rows=True)
    def same(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if fault == "it fails":
            raise ValueError("no")
        return x

    async with inferring(same, double, timeout_s=0.3) as one:
        bombing = asyncio.ensure_future(one.infer(one.first, bytearray(ask(np.zeros((2**40, 0)))), door="test"))
        beside = await one.infer(one.models["double"], bytearray(ask([1])), door="test")
        assert values(beside) == [[2]]
        code = Code.FUNCTION_FAILED if fault == "it fails" else Code.TIMEOUT
        assert code_of(await bombing) is code
