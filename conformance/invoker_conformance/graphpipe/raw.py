"""`Socket`: a connection to a raw socket, where each message follows its length, in both directions (G-016).

It sends exactly the bytes of a scenario.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from invoker_conformance.graphpipe.read import Inferred, Unreadable, read_inferred
from invoker_conformance.graphpipe.requests import Request
from invoker_conformance.graphpipe.rules import told
from invoker_conformance.graphpipe.tensors import Tensor
from invoker_conformance.riff.probe import Probe, Said
from invoker_conformance.scenario import Failure
from invoker_conformance.target import Unreachable, parse_addresses

_LARGEST = 1 << 31


def framed(request: Request) -> bytes:
    """A request, preceded by its length."""
    return struct.pack("<I", len(request.buffer)) + request.buffer


class Socket:
    """One connection.

    Attributes:
        sent: The text of the sent messages, for reports.
        accepted_bytes: How many bytes of `push` the target has accepted.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, probe: Probe) -> None:
        self._reader = reader
        self._writer = writer
        self._probe = probe
        self.sent = ""
        self.accepted_bytes = 0

    async def push(self, data: bytes) -> None:
        """Send bytes without a time limit; ``accepted_bytes`` grows meanwhile."""
        self._writer.write(data)
        await self._writer.drain()
        self.accepted_bytes += len(data)

    async def send(self, data: bytes, said: str) -> None:
        """Send bytes; if the target has closed the connection, they are dropped.

        Raises:
            Failure: The target does not read them in time.
        """
        self.sent = ", ".join(filter(None, (self.sent, said)))
        self._probe.last_call = Said(self.sent)
        try:
            async with asyncio.timeout(self._probe.timeout_s):
                self._writer.write(data)
                await self._writer.drain()
        except TimeoutError:
            raise Failure(
                f"the target reads nothing for {self._probe.timeout_s:g} s", "that it reads", self.sent
            ) from None
        except ConnectionError:
            return  # not an error, since earlier answers can still be read

    async def ask(self, *requests: Request) -> None:
        """Send these requests in one piece."""
        await self.send(b"".join(map(framed, requests)), ", ".join(map(str, requests)))

    def half_close(self) -> None:
        """Half-close the connection."""
        self._writer.write_eof()

    async def message(self) -> bytes | None:
        """Return the next message without its length; None if the target has closed the connection.

        Raises:
            Failure: Nothing came in time, or a message is incomplete.
        """
        is_inside = False
        try:
            async with asyncio.timeout(self._probe.timeout_s):
                (size,) = struct.unpack("<I", await self._reader.readexactly(4))
                if not 0 < size < _LARGEST:
                    raise Failure(f"a message of {size} bytes", "one FlatBuffer after its length (G-016)", self.sent)
                is_inside = True
                return await self._reader.readexactly(size)
        except TimeoutError:
            raise Failure(f"nothing within {self._probe.timeout_s:g} s", "a message, or the end", self.sent) from None
        except asyncio.IncompleteReadError as error:
            if not error.partial and not is_inside:
                return None
            what = "a message" if is_inside else "a length"
            raise Failure(f"{len(error.partial)} bytes of {what}, then the end", "a whole message", self.sent) from None
        except ConnectionError:
            return None

    async def inferred(self) -> Inferred:
        """Return the next message, which must be an InferResponse."""
        data = await self.message()
        if data is None:
            raise Failure("the end of the connection", "an InferResponse", self.sent)
        try:
            return read_inferred(data)
        except Unreadable as error:
            raise Failure(f"{len(data)} bytes, and {error}", "an InferResponse", self.sent) from None

    async def gives(self, *expected: Tensor) -> None:
        """Check that the next message has exactly these tensors."""
        found = await self.inferred()
        if found.errors or found.tensors != expected:
            raise Failure(str(found), "; ".join(map(str, expected)), self.sent)

    async def refuses(self, code: int) -> None:
        """Check that the next message is an error with this code."""
        found = await self.inferred()
        if found.tensors or not found.errors or found.errors[0][0] != code:
            raise Failure(str(found), told([code]), self.sent)

    async def ends(self) -> None:
        """Check that the target closes the connection without another message."""
        if (data := await self.message()) is not None:
            raise Failure(f"a message of {len(data)} bytes", "the end of the connection", self.sent)


@asynccontextmanager
async def socket_to(probe: Probe, place: str, *, is_unix: bool) -> AsyncIterator[Socket]:
    """Connect to ``HOST:PORT`` or to the path of a Unix socket; the connection is reset at the end.

    Raises:
        Unreachable: The address has no listener.
    """
    try:
        if is_unix:
            reader, writer = await asyncio.open_unix_connection(place)
        else:
            address = parse_addresses([place]).default
            assert address is not None
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except OSError as error:
        raise Unreachable(f"nothing answers at {place}: {error.strerror}") from None
    try:
        yield Socket(reader, writer, probe)
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
