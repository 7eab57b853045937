"""`invoker.protocols.graphpipe.service.framed`: GraphPipe behind lengths, on bare sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.errors import StartupError
from invoker.protocols.graphpipe.service import framed as module
from invoker.protocols.graphpipe.service.framed import FramedTransport
from invoker.tensors import Code, read_metadata_response
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, code_of, values
from tests.tensors.samples import fixture
from tests.transports.models import exchanged, inferring
from tests.transports.served import until

REQUEST = fixture("infer_request")


def double(x: NDArray[Any]) -> NDArray[Any]:
    return x * 2


class Held:
    """A function that answers when it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Event()
        self.left = asyncio.Event()

    async def run(self, x: NDArray[Any]) -> NDArray[Any]:
        self.calls += 1
        try:
            await self.go.wait()
        finally:
            self.left.set()
        return x


@asynccontextmanager
async def opened(function: Any = double, **settings: Any) -> AsyncIterator[tuple[FramedTransport, int]]:
    """A transport on a free port."""
    async with inferring(function, **settings) as inferences:
        transport = FramedTransport(inferences, "127.0.0.1:0")
        address = await transport.start()
        try:
            yield transport, int(address.rpartition(":")[2])
        finally:
            await transport.stop(0)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def framed(buffer: bytes) -> bytes:
    return struct.pack("<I", len(buffer)) + buffer


async def read_one(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack("<I", await reader.readexactly(4))
    return await reader.readexactly(size)


async def test_G016_requests_are_answered_in_order() -> None:
    """Inferences and metadata, on one connection."""
    async with opened() as (_, port), connected(port) as (reader, writer):
        assert values(await exchanged(reader, writer, REQUEST)) == [[[2.0, 4.0]]]
        assert read_metadata_response(await exchanged(reader, writer, METADATA_REQUEST)).name == "double"
        assert values(await exchanged(reader, writer, REQUEST)) == [[[2.0, 4.0]]]


async def test_G016_GT50_pipelined_requests_and_the_end_behind_them() -> None:
    """A client may half-close; all are answered, then the connection ends."""
    async with opened() as (_, port), connected(port) as (reader, writer):
        writer.write(b"".join(framed(ask([number])) for number in range(5)))
        writer.write_eof()
        for number in range(5):
            assert values(await read_one(reader)) == [[2 * number]]
        assert await reader.read() == b""


@pytest.mark.parametrize(("size", "code"), [(0, Code.MALFORMED), (2**32 - 1, Code.TOO_LARGE), (201, Code.TOO_LARGE)])
async def test_G017_GT50_bad_lengths_end_the_connection(size: int, code: Code) -> None:
    """With an error; what came before is answered."""
    async with opened(limit_bytes=200) as (_, port), connected(port) as (reader, writer):
        writer.write(framed(REQUEST) + struct.pack("<I", size) + bytes(10))
        assert values(await read_one(reader)) == [[[2.0, 4.0]]]
        assert code_of(await read_one(reader)) is code
        assert await reader.read() == b""


async def test_G018_an_end_within_a_message_invokes_nothing() -> None:
    """The connection ends without a word."""
    held = Held()
    async with opened(held.run) as (_, port):
        for part in (framed(REQUEST)[:2], framed(REQUEST)[:50]):
            async with connected(port) as (reader, writer):
                writer.write(part)
                writer.write_eof()
                assert await reader.read() == b""
    assert held.calls == 0


async def test_G019_one_at_a_time_and_reading_pauses() -> None:
    """What a client sends on is stopped by its own socket."""
    held = Held()
    large = framed(ask(np.zeros(500_000)))
    async with opened(held.run) as (_, port):
        loop = asyncio.get_running_loop()
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(False)
        sending = loop.create_task(loop.sock_sendall(sock, large * 30))
        await until(lambda: held.calls == 1)
        done, _ = await asyncio.wait([sending], timeout=0.5)
        assert not done  # 120 MB are nowhere to be put
        assert held.calls == 1
        sending.cancel()
        await asyncio.wait([sending])
        sock.close()


async def test_G019_two_requests_are_read_ahead_and_no_more() -> None:
    """However small they are; each of those that wait is begun when its turn comes."""
    held = Held()
    async with (
        opened(held.run) as (transport, port),
        connected(port) as (reader, writer),
        connected(port) as (other, ask_it),
    ):
        writer.write(b"".join(framed(ask([number])) for number in range(10)))
        await until(lambda: held.calls == 1)
        line = next(one for one in transport._connections if one._begun)
        await until(lambda: line._begun == 3)
        for _ in range(10):  # long enough for all others, had they been read
            assert read_metadata_response(await exchanged(other, ask_it, METADATA_REQUEST)).name == "run"
        assert (line._begun, held.calls) == (3, 1)
        held.go.set()
        for number in range(10):
            assert values(await read_one(reader)) == [[number]]
    assert held.calls == 10


async def test_G012_G101_a_bad_request_does_not_harm_the_next() -> None:
    """It is answered with its error."""
    async with opened() as (_, port), connected(port) as (reader, writer):
        assert code_of(await exchanged(reader, writer, b"\xff" * 100)) is Code.MALFORMED
        assert values(await exchanged(reader, writer, REQUEST)) == [[[2.0, 4.0]]]


async def test_G075_a_connection_that_breaks_cancels() -> None:
    """The function's cleanup runs."""
    held = Held()
    async with opened(held.run) as (_, port), connected(port) as (_, writer):
        writer.write(framed(REQUEST))
        await until(lambda: held.calls == 1)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets
        writer.transport.abort()
        await held.left.wait()


async def test_G079_timeouts_are_errors_on_sockets_too() -> None:
    """E15; the connection lives."""
    held = Held()
    async with opened(held.run, timeout_s=0.05) as (_, port), connected(port) as (reader, writer):
        assert code_of(await exchanged(reader, writer, REQUEST)) is Code.TIMEOUT
        held.go.set()
        assert values(await exchanged(reader, writer, REQUEST)) == [[[1.0, 2.0]]]


async def test_G014_a_message_that_comes_too_slowly_ends_the_connection() -> None:
    """Nothing is invoked."""
    async with opened(body_s=0.05, bytes_per_s=1e9) as (_, port), connected(port) as (reader, writer):
        writer.write(framed(REQUEST)[:50])
        assert await reader.read() == b""


async def test_large_tensors() -> None:
    """Both ways, in parts."""
    rows = np.arange(1_000_000, dtype="f4")
    async with opened() as (_, port), connected(port) as (reader, writer):
        (found,) = values(await exchanged(reader, writer, ask(rows)))
    assert np.array_equal(np.float32(found), rows * 2)


async def test_stopping_lets_requests_end_and_closes_idle_connections() -> None:
    """Within the grace; then it cuts."""
    held = Held()
    async with opened(held.run) as (transport, port), connected(port) as (idle, _), connected(port) as (busy, writer):
        writer.write(framed(REQUEST))
        await until(lambda: held.calls == 1)
        stopping = asyncio.ensure_future(transport.stop(5))
        assert await idle.read() == b""
        held.go.set()
        assert values(await read_one(busy)) == [[[1.0, 2.0]]]
        await stopping
        assert await busy.read() == b""
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_stopping_cuts_what_does_not_end() -> None:
    """The inference is cancelled."""
    held = Held()
    async with opened(held.run) as (transport, port), connected(port) as (_, writer):
        writer.write(framed(REQUEST))
        await until(lambda: held.calls == 1)
        await transport.stop(0)
        await held.left.wait()


async def test_G015_GT51_unix_sockets(tmp_path: Path) -> None:
    """A stale one is replaced, one that somebody serves is not; it goes with the server."""
    path = tmp_path / "graphpipe.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    async with inferring(double) as inferences:
        transport = FramedTransport(inferences, str(path), is_unix=True)
        assert await transport.start() == str(path)
        with pytest.raises(StartupError, match="in use; set --graphpipe-unix"):
            await FramedTransport(inferences, str(path), is_unix=True).start()
        reader, writer = await asyncio.open_unix_connection(str(path))
        assert values(await exchanged(reader, writer, REQUEST)) == [[[2.0, 4.0]]]
        writer.transport.abort()
        await transport.stop(1)
    assert not path.exists()


async def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    """So is a path that is no socket."""
    (tmp_path / "file").write_text("mine")
    async with opened() as (_, port), inferring(double) as inferences:
        with pytest.raises(StartupError, match=rf"127.0.0.1:{port} for GraphPipe: .*; set --graphpipe-tcp"):
            await FramedTransport(inferences, f"127.0.0.1:{port}").start()
        with pytest.raises(StartupError, match="for GraphPipe"):
            await FramedTransport(inferences, str(tmp_path / "file"), is_unix=True).start()
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("asks", [False, True])
async def test_who_comes_while_a_transport_leaves_is_let_go(asks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before anybody has looked at its connection; what it asks at once is answered."""
    monkeypatch.setattr(module, "_LATE_S", 0.1)
    async with opened() as (transport, port):
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.setblocking(False)
            while not any("_connected" in repr(one.get_coro()) for one in asyncio.all_tasks()):  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert not transport._connections
            transport.leave()
            got = bytearray()
            async with asyncio.timeout(2 * SLOW):
                if asks:
                    await loop.sock_sendall(sock, framed(REQUEST))
                while part := await loop.sock_recv(sock, 1000):
                    got += part
        assert [values(bytes(got[4:]))] == [[[[2.0, 4.0]]]] if asks else not got
        await until(lambda: not transport._connections)
