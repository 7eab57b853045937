"""Raw TCP and Unix sockets, on which each message follows its length. They serve ``mirror``. Catalogue 2.1."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.raw import Socket, framed, socket_to
from invoker_conformance.graphpipe.read import Unreadable, read_metadata
from invoker_conformance.graphpipe.requests import METADATA, REFERENCE, REFERENCE_TENSOR, infer
from invoker_conformance.graphpipe.scenarios_door import GARBAGE
from invoker_conformance.graphpipe.tensors import UINT8, Tensor, floats
from invoker_conformance.scenario import Failure, NotProvided, scenario

_MIB = 1 << 20
_SENT_BYTES, _ACCEPTED_BYTES = 64 * _MIB, 48 * _MIB
"""How many bytes of requests are pushed; and from how many accepted bytes on the target must be reading without end,
since this is more than sockets can buffer and a target may read ahead."""


def each(asker: Asker) -> list[tuple[str, bool]]:
    """Every raw socket on the command line: its address, and whether it is a Unix socket.

    Raises:
        NotProvided: No raw socket was given.
    """
    places = [(place, is_unix) for place, is_unix in ((asker.facts.tcp, False), (asker.facts.unix, True)) if place]
    if not places:
        raise NotProvided("a bare socket: --graphpipe-tcp or --graphpipe-unix")
    return places


@asynccontextmanager
async def connected(asker: Asker, where: tuple[str, bool]) -> AsyncIterator[Socket]:
    """Open a new connection."""
    async with socket_to(asker, where[0], is_unix=where[1]) as connection:
        yield connection


@scenario("GT-50", "GT-51", "G-016", function="mirror")
async def messages_behind_their_length(asker: Asker) -> None:
    """Requests that come one after the other, at once or byte by byte are answered in order."""
    for where in each(asker):
        async with connected(asker, where) as socket:
            await socket.ask(REFERENCE)
            await socket.gives(REFERENCE_TENSOR)
            await socket.ask(infer(floats(1)), infer(floats(2)))
            await socket.gives(floats(1))
            await socket.gives(floats(2))
            await socket.ask(*(infer(floats(number)) for number in range(50)))
            for number in range(50):
                await socket.gives(floats(number))
            for at, byte in enumerate(framed(REFERENCE)):
                await socket.send(bytes([byte]), "byte by byte" * (at == 0))
            await socket.gives(REFERENCE_TENSOR)


@scenario("GT-51", "G-015", function="mirror")
async def http_over_a_unix_socket(asker: Asker) -> None:
    """A Unix socket that speaks HTTP gives the same answers as TCP, for inferences, metadata and errors."""
    if not asker.facts.http_unix:
        raise NotProvided("a Unix socket that speaks HTTP: --http-unix")
    async with asker.transport_of(unix=asker.facts.http_unix).connect() as connection:
        await asker.send(connection, REFERENCE)
        asker.has_tensors(await connection.answer(), REFERENCE_TENSOR)
        await asker.send(connection, GARBAGE)
        asker.has_error(await connection.answer(), 1)
        await asker.send(connection, METADATA)
        answer = await connection.answer()
        if (found := asker.has_metadata(answer)) != (wanted := await asker.metadata()):
            raise Failure(str(found), str(wanted), answer.sent)


@scenario("G-016", function="mirror")
async def metadata_over_a_socket(asker: Asker) -> None:
    """A MetadataRequest gets the same answer as over HTTP."""
    wanted = await asker.metadata()
    for where in each(asker):
        async with connected(asker, where) as socket:
            await socket.ask(METADATA)
            data = await socket.message() or b""
            try:
                found = read_metadata(data)
            except Unreadable as error:
                raise Failure(f"{len(data)} bytes, and {error}", "a MetadataResponse", socket.sent) from None
            if found != wanted:
                raise Failure(str(found), str(wanted), socket.sent)


@scenario("G-016", "G-101", "G-012", function="mirror")
async def errors_keep_a_socket(asker: Asker) -> None:
    """A malformed message, or a wrong tensor, is answered with an error, and the connection continues."""
    for where in each(asker):
        async with connected(asker, where) as socket:
            await socket.ask(GARBAGE, infer(Tensor(UINT8, (2,), b"\0")), REFERENCE)
            await socket.refuses(1)
            await socket.refuses(10)
            await socket.gives(REFERENCE_TENSOR)


@scenario("G-016", function="mirror")
async def half_closed_socket(asker: Asker) -> None:
    """A client that has half-closed still gets its answers, and then the end."""
    for where in each(asker):
        async with connected(asker, where) as socket:
            await socket.ask(REFERENCE, infer(floats(1)))
            socket.half_close()
            await socket.gives(REFERENCE_TENSOR)
            await socket.gives(floats(1))
            await socket.ends()


@scenario("GT-50", "G-017", function="mirror")
async def wrong_lengths(asker: Asker) -> None:
    """A length of 0, or above the limit, is answered with an error and the end, after the earlier answers."""
    for where in each(asker):
        for length, code in ((0, 1), (2**32 - 1, 13), (asker.facts.limit_bytes + 1, 13)):
            async with connected(asker, where) as socket:
                await socket.ask(REFERENCE)
                await socket.send(struct.pack("<I", length), f"the length {length}")
                await socket.gives(REFERENCE_TENSOR)
                await socket.refuses(code)
                await socket.ends()
    await asker.survives()


@scenario("GT-50", "G-018", function=("mirror", "marks"))
async def end_inside_a_message(asker: Asker) -> None:
    """A connection that ends within a length or a message is closed without an answer, and nothing is invoked."""
    watch = await asker.watch("mirror.calls")
    whole = framed(REFERENCE)
    for where in each(asker):
        for size in (2, 4, 5, len(whole) - 1):
            async with connected(asker, where) as socket:
                await socket.send(whole[:size], f"the first {size} bytes of {REFERENCE}, then the end")
                socket.half_close()
                await socket.ends()
    await watch.stays("mirror.calls")


@scenario("G-019", "G-016", function="mirror")
async def a_client_that_does_not_read_answers(asker: Asker) -> None:
    """The target stops reading while its answers are not read; afterwards all of them come, in order."""
    size = min(_MIB, asker.facts.limit_bytes // 2)
    tensors = [Tensor(UINT8, (size,), bytes([number % 256]) * size) for number in range(_SENT_BYTES // size)]
    for where in each(asker):
        async with connected(asker, where) as socket:
            sending = asyncio.create_task(_send_all(socket, tensors))
            try:
                if await _settled(socket) > _ACCEPTED_BYTES:
                    met = f"{socket.accepted_bytes} bytes of requests that are read while no answer is taken"
                    raise Failure(met, "that reading stops (G-019)", f"requests of {size} bytes, one after the other")
                for tensor in tensors:
                    await socket.gives(tensor)
                await sending
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await sending


async def _send_all(socket: Socket, tensors: list[Tensor]) -> None:
    for tensor in tensors:
        await socket.push(framed(infer(tensor)))


async def _settled(socket: Socket) -> int:
    """Wait until the number of accepted bytes does not grow for a while, and return it."""
    before = -1
    while before != socket.accepted_bytes <= _ACCEPTED_BYTES:
        before = socket.accepted_bytes
        await asyncio.sleep(0.3)
    return socket.accepted_bytes
