"""Bare sockets: messages behind their lengths, their ends, and what is no message."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.raw import Socket, framed, socket_to
from invoker_conformance.graphpipe.requests import REFERENCE, REFERENCE_TENSOR, infer
from invoker_conformance.graphpipe.tensors import floats
from invoker_conformance.scenario import Failure
from invoker_conformance.target import Target, Unreachable, parse_addresses
from tests.conformance.graphpipe.peer import Peer


def asker() -> Asker:
    """The tools of a scenario; no address is needed."""
    return Asker(Target(parse_addresses([]), parse_addresses([]), timeout_s=0.3, message_bytes=1), "mirror")


@asynccontextmanager
async def answering(answer: bytes, *, stays: bool = False) -> AsyncIterator[Socket]:
    """A connection to a server that says one thing to whatever it is sent first."""
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(answer)
        if stays:
            await left.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with socket_to(asker(), place, is_unix=False) as socket:
            await socket.send(b"ask!", "a question")
            yield socket
    finally:
        left.set()
        server.close()


async def test_messages_behind_their_length() -> None:
    """Answers come in order; errors are told from tensors."""
    async with Peer() as peer, socket_to(asker(), peer.tcp, is_unix=False) as socket:
        await socket.ask(REFERENCE, infer(floats(1), names=("y",)))
        await socket.gives(REFERENCE_TENSOR)
        await socket.refuses(4)
        socket.half_close()
        await socket.ends()
        assert socket.sent == f"{REFERENCE}, {infer(floats(1), names=('y',))}"


async def test_other_answers_are_failures() -> None:
    """Each says what came, and what was sent."""
    async with Peer() as peer, socket_to(asker(), peer.tcp, is_unix=False) as socket:
        await socket.ask(REFERENCE, REFERENCE, REFERENCE)
        for wanted in (socket.gives(floats(1)), socket.refuses(1), socket.ends()):
            with pytest.raises(Failure) as raised:
                await wanted
            assert raised.value.sent == socket.sent


@pytest.mark.parametrize(
    ("answer", "met"),
    [
        (b"", "the end of the connection"),
        (b"\0\0\0\0", "a message of 0 bytes"),
        (b"\xff" * 4, "a message of 4294967295 bytes"),
        (b"\1\0", "2 bytes of a length"),
        (struct.pack("<I", 9) + b"cut", "3 bytes of a message"),
        (struct.pack("<I", 9) + b"nonsense!", "9 bytes, and"),
    ],
)
async def test_what_is_no_message(answer: bytes, met: str) -> None:
    """Ends, lengths that cannot be, messages that are cut, and those that hold nothing."""
    async with answering(answer) as socket:
        with pytest.raises(Failure, match=met):
            await socket.inferred()


async def test_nothing_comes() -> None:
    """A target that stays silent is waited for, not for ever."""
    async with answering(b"", stays=True) as socket:
        with pytest.raises(Failure, match=r"nothing within 0\.3 s"):
            await socket.message()


async def test_nobody_listens(tmp_path: Path) -> None:
    """Neither on TCP nor on a Unix socket."""
    for place, is_unix in (("127.0.0.1:1", False), (str(tmp_path / "absent"), True)):
        with pytest.raises(Unreachable, match="nothing answers"):
            async with socket_to(asker(), place, is_unix=is_unix):
                pass


async def test_a_unix_socket_is_as_good(tmp_path: Path) -> None:
    """It says the same."""
    path = str(tmp_path / "s")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(framed(REFERENCE))))
        writer.close()

    async with await asyncio.start_unix_server(serve, path), socket_to(asker(), path, is_unix=True) as socket:
        await socket.ask(REFERENCE)
        assert await socket.message() == REFERENCE.buffer


async def test_what_is_pushed_is_counted() -> None:
    """Once it has left."""
    async with answering(b"", stays=True) as socket:
        await socket.push(bytes(100))
        await socket.push(bytes(50))
        assert socket.accepted_bytes == 150
