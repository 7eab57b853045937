"""Ways to ask a server wrongly: over HTTP, and over bare sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from random import Random

from h2.config import H2Configuration
from h2.connection import H2Connection

from invoker.tensors import METADATA_REQUEST
from tests.conftest import SLOW
from tests.fuzz.tensors_answers import Broken, frame, http_answer
from tests.fuzz.tensors_attacks import of_size

Reader, Writer, Make = asyncio.StreamReader, asyncio.StreamWriter, Callable[[Random], bytes]

HUNG_S = 10.0 * SLOW
"""An attack that has neither an answer nor an end by then hangs; none has to, so late an answer is a fault."""

PATHS = ("echo", "echo", "pair", "listed", "words", "rowed", "batched", "batched", "fails", "several", "state")

_KEY = b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
_ODD = (
    b"PUT %b HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
    b"POST %b HTTP/1.0\r\ncontent-length: 32\r\n\r\n" + METADATA_REQUEST,
    b"POST %b HTTP/1.1\r\nhost: x\r\n\r\n",
    b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n",
    b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 70000000\r\nexpect: 100-continue\r\n\r\n",
    b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
    b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffff\r\nabc",
    b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n-1\r\nabc",
    b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
    b"POST %b HTTP/1.1\r\nhost: x\r\naccept: text/html\r\ncontent-length: 1\r\n\r\nx",
    b"GET %b?x=%%ff HTTP/1.1\r\nhost: x\r\naccept: text/html\r\n\r\n",
    b"GET %b HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n" + _KEY,
    b"GET %b/../\xff HTTP/1.1\r\nhost: x\r\n\r\n",
    b"HEAD %b HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /control/shutdown HTTP/1.1\r\nhost: x\r\n\r\n",
    b"POST /control/is_ready HTTP/1.1\r\nhost: x\r\n\r\n",
    b"POST %b HTTP/1.1\r\nhost: x\r\nupgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n",
)


@dataclass(frozen=True)
class Transports:
    """Where a server is.

    Attributes:
        http: Host and port.
        tcp: Likewise.
        unix: Path of a socket.
        http_unix: Likewise, of one for HTTP.
    """

    http: tuple[str, int]
    tcp: tuple[str, int]
    unix: str
    http_unix: str


@contextlib.asynccontextmanager
async def _connected(transports: Transports, transport: str) -> AsyncIterator[tuple[Reader, Writer]]:
    """Connected, and cut in any case, which is one of the attacks."""
    if transport in ("unix", "http-unix"):
        reader, writer = await _to_unix(transports.unix if transport == "unix" else transports.http_unix)
    else:
        reader, writer = await asyncio.open_connection(*(transports.tcp if transport == "tcp" else transports.http))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _to_unix(path: str) -> tuple[Reader, Writer]:
    while True:
        try:
            return await asyncio.open_unix_connection(path)
        except BlockingIOError:  # so many wait to be accepted that none more may; over TCP the kernel would try again
            await asyncio.sleep(0.01)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Leave with a reset instead of an end."""
    with contextlib.suppress(OSError):
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def by_http(transports: Transports, chance: Random, make: Make, path: str) -> str:
    """One connection with an attack; says how it went.

    Raises:
        Broken: The answer is of no kind that may be.
        TimeoutError: There is none.
    """
    way = chance.choice(
        (_asks, _asks, _asks, _asks, _chunked, _short, _pipelined, _odd, _leaves, _unread, _slow, _resets)
    )
    async with (
        asyncio.timeout(HUNG_S),
        _connected(transports, chance.choice(("http", "http", "http-unix"))) as (reader, writer),
    ):
        try:
            return await way(reader, writer, chance, make, path.encode())
        except (ConnectionError, asyncio.IncompleteReadError):
            return "closed"


async def by_socket(transports: Transports, chance: Random, make: Make) -> str:
    """The same behind lengths."""
    way = chance.choice((_frames, _frames, _frames, _frames, _length, _cut, _backlog, _drips))
    async with asyncio.timeout(HUNG_S), _connected(transports, chance.choice(("tcp", "unix"))) as (reader, writer):
        try:
            return await way(reader, writer, chance, make)
        except (ConnectionError, asyncio.IncompleteReadError):
            return "closed"


# Over HTTP.


def _head(path: bytes, size: int) -> bytes:
    return b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (path, size)


async def _asks(reader: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    """As one should, several times."""
    said = ""
    for _ in range(chance.choice((1, 1, 1, 5))):
        buffer = make(chance)
        writer.write(_head(path, len(buffer)) + buffer)
        said = await http_answer(reader)
    return said


async def _chunked(reader: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    buffer = make(chance)
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" % path)
    size = chance.choice((1, 7, 1000, 100_000)) if len(buffer) < 5000 else 100_000
    for at in range(0, len(buffer), size):
        part = buffer[at : at + size]
        writer.write(b"%x\r\n%b\r\n" % (len(part), part))
    writer.write(b"0\r\n\r\n")
    return await http_answer(reader)


async def _short(reader: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    """Less than was announced, or more."""
    buffer = make(chance)
    writer.write(_head(path, max(0, len(buffer) + chance.choice((1, 1000, 10**10, -1, -10)))) + buffer)
    if chance.random() < 0.5:
        with contextlib.suppress(OSError):
            writer.write_eof()
    else:
        _reset(writer)
        return "left"
    return await http_answer(reader)


async def _pipelined(reader: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    count = chance.choice((2, 5, 20))
    for _ in range(count):
        buffer = make(chance)
        if len(buffer) < 20_000:
            writer.write(_head(path, len(buffer)) + buffer)
    return await http_answer(reader)


async def _odd(reader: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    line = chance.choice(_ODD)
    writer.write(line % path if b"%b" in line else line)
    if chance.random() < 0.5:
        with contextlib.suppress(OSError):
            writer.write_eof()
        return await http_answer(reader, is_head=line.startswith(b"HEAD"))
    await asyncio.sleep(0.01)
    _reset(writer)
    return "left"


async def _leaves(_: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    """While the function runs, or before."""
    size = chance.choice((1, 100_000, 2_000_000))
    buffer = of_size(size)
    whole = _head(b"/graphpipe/waits" if chance.random() < 0.5 else path, len(buffer)) + buffer
    writer.write(whole[: chance.choice((len(whole), len(whole), len(whole) // 2, 30))])
    await asyncio.sleep(chance.choice((0, 0.005, 0.05)))
    if chance.random() < 0.5:
        _reset(writer)
    return "left"


async def _unread(reader: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    """A long answer of which little is taken."""
    buffer = of_size(4_000_000)
    writer.write(_head(b"/graphpipe/echo", len(buffer)) + buffer)
    await reader.read(chance.choice((1, 1000, 300_000)))
    if chance.random() < 0.5:
        _reset(writer)
    return "left"


async def _slow(_: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    """Byte by byte, for a while."""
    buffer = make(chance)[:1000]
    await _drip(writer, _head(path, len(buffer)) + buffer, chance)
    return "left"


async def _resets(reader: Reader, writer: Writer, chance: Random, make: Make, path: bytes) -> str:
    """Streams of HTTP/2, most of which are given up at once."""
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    for _ in range(chance.choice((1, 10, 90))):
        stream = client.get_next_available_stream_id()
        client.send_headers(
            stream, [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        )
        buffer = make(chance)[: min(16_000, client.local_flow_control_window(stream))]
        client.send_data(stream, buffer, end_stream=chance.random() < 0.8)
        if chance.random() < 0.8:
            client.reset_stream(stream)
        if chance.random() < 0.1:
            writer.write(client.data_to_send())
            await asyncio.sleep(chance.choice((0, 0.01)))
    writer.write(client.data_to_send())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(chance.choice((0.01, 0.05))):
            await reader.read(100_000)
    if chance.random() < 0.5:
        _reset(writer)
    return "left"


async def _drip(writer: Writer, whole: bytes, chance: Random) -> None:
    step = chance.choice((1, 5, 20))
    for at in range(0, min(len(whole), 30 * step), step):
        writer.write(whole[at : at + step])
        await asyncio.sleep(0.005)
    if chance.random() < 0.5:
        _reset(writer)


# Behind lengths.


async def _frames(reader: Reader, writer: Writer, chance: Random, make: Make) -> str:
    """Several requests at once; all of them are answered, in whatever way."""
    buffers = [buffer for _ in range(chance.choice((1, 1, 2, 10))) if (buffer := make(chance))]
    for buffer in buffers:
        writer.write(struct.pack("<I", len(buffer)) + buffer)
    if chance.random() < 0.5:
        writer.write_eof()
    found = [await frame(reader) for _ in buffers]
    return f"code {max(found, default=0)}"


async def _length(reader: Reader, writer: Writer, chance: Random, make: Make) -> str:
    """One that is wrong; the answer is an error and the end."""
    writer.write(struct.pack("<I", chance.choice((0, 2**32 - 1, 2**31, (64 << 20) + 1))) + make(chance)[:5000])
    code = await frame(reader)
    if code not in (1, 13):
        raise Broken(f"a wrong length is answered with code {code}")
    if await reader.read():
        raise Broken("something follows the answer to a wrong length")
    return f"code {code}"


async def _cut(reader: Reader, writer: Writer, chance: Random, make: Make) -> str:
    """The end comes too early; nothing is answered."""
    buffer = make(chance)
    whole = struct.pack("<I", len(buffer)) + buffer
    writer.write(whole[: chance.randrange(len(whole))])
    if chance.random() < 0.5:
        _reset(writer)
        return "left"
    writer.write_eof()
    if await reader.read():
        raise Broken("half a message is answered")
    return "closed"


async def _backlog(reader: Reader, writer: Writer, chance: Random, make: Make) -> str:
    """More than is taken, and nothing of the answers is."""
    buffer = of_size(chance.choice((1000, 1_000_000)))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(chance.choice((0.02, 0.1))):
            for _ in range(30):
                writer.write(struct.pack("<I", len(buffer)) + buffer)
                await writer.drain()
    await reader.read(10)
    if chance.random() < 0.5:
        _reset(writer)
    return "left"


async def _drips(_: Reader, writer: Writer, chance: Random, make: Make) -> str:
    buffer = make(chance)[:1000]
    await _drip(writer, struct.pack("<I", len(buffer)) + buffer, chance)
    return "left"
