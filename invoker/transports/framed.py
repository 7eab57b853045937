"""GraphPipe on bare sockets: TCP and Unix ones, each message behind its length (G-016).

A message is a FlatBuffer with size prefix: four bytes little-endian that say how long it is, then the buffer; both
ways. Requests of a connection are answered in order, one at a time; while one runs, the next two are read, and no more
(G-019): whoever sends on is stopped by his own socket. A client may half-close after its last request; one whose
connection breaks loses the inference under way.

Between requests a client may be silent for as long as it likes, so there is a limit to how many may be connected. Once
a message has begun, its length included, it has to come at some speed, and a response has to be taken at some.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from invoker.protocols.graphpipe.answer import Response
from invoker.tensors import Code, GraphPipeError
from invoker.transports.inferences import Inferences
from invoker.transports.sockets import BACKLOG, Purpose, UnixSocket, address_of, ask_whether_alive, bind_tcp

__all__ = ["FramedDoor"]

log = logging.getLogger(__name__)

_TCP: Final = Purpose("GraphPipe", "--graphpipe-tcp", "--graphpipe-tcp")
_UNIX: Final = Purpose("GraphPipe", "--graphpipe-unix")
_READ_BYTES: Final = 1 << 18
_PIECE_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 1 << 16
_PREFIX_BYTES: Final = 4
_HANDSHAKE_S: Final = 10.0
_CLOSE_S: Final = 5.0
_LINGER_S: Final = 1.0


class FramedDoor:
    """Serves the first model of some inferences on one address.

    Args:
        inferences: Runs them.
        address: ``host:port``, or the path of a Unix socket.
        is_unix: Which of the two.
        mode: Permissions of a Unix socket's file, in octal.
        tls: For TCP; None serves plain text.
        share_port: Whether other processes may bind the same port.
    """

    def __init__(
        self,
        inferences: Inferences,
        address: str,
        *,
        is_unix: bool = False,
        mode: str = "600",
        tls: ssl.SSLContext | None = None,
        share_port: bool = False,
    ) -> None:
        self._inferences = inferences
        self._address = address
        self._is_unix = is_unix
        self._mode = mode
        self._tls = tls
        self._share_port = share_port
        self._server: asyncio.Server | None = None
        self._file: UnixSocket | None = None
        self._connections: dict[_Connection, asyncio.Task[Any]] = {}
        self._served = 0

    async def start(self) -> str:
        """Bind, and begin to answer.

        Returns:
            The address, with the port that was taken.

        Raises:
            StartupError: It cannot be bound.
        """
        if self._is_unix:
            file = self._file = UnixSocket(self._address, _UNIX, mode=self._mode)
            self._server = await asyncio.start_unix_server(self._connected, sock=file.sock, backlog=BACKLOG)
            return self._address
        host, _, port = self._address.rpartition(":")
        sock = bind_tcp(host, int(port), _TCP, share_port=self._share_port)
        limit_s = None if self._tls is None else _HANDSHAKE_S
        self._server = await asyncio.start_server(
            self._connected, sock=sock, backlog=BACKLOG, ssl=self._tls, ssl_handshake_timeout=limit_s
        )
        return address_of(sock)

    def leave(self) -> None:
        """Accept no more; connections end when nothing of theirs is left to answer."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.end_when_idle()

    async def stop(self, grace_s: float) -> None:
        """Accept no more; requests under way have ``grace_s`` before their connections are cut. Idempotent."""
        self.leave()
        if self._file is not None:
            self._file.remove()
        if self._connections:
            await asyncio.wait(list(self._connections.values()), timeout=grace_s)
        left = dict(self._connections)
        for connection, task in left.items():
            connection.abort()
            task.cancel()
        if left:
            log.warning("%s GraphPipe connections were cut", len(left))
            await asyncio.wait(list(left.values()), timeout=_CLOSE_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # asyncio runs this in a task of its own
        if not self._is_unix:
            ask_whether_alive(writer.get_extra_info("socket"))
        door = "unix socket" if self._is_unix else "tcp socket"
        connection = _Connection(self._inferences, reader, writer, door=door)
        self._connections[connection] = task
        most = self._inferences.settings.connections
        is_served = self._served < most
        self._served += is_served
        try:
            if is_served:
                await connection.run()
            else:
                detail = f"{most} connections are open on this socket, and no more are taken at once"
                await connection.refuse(GraphPipeError(Code.OVERLOADED, detail))
        except asyncio.CancelledError:
            log.debug("a GraphPipe connection was cut")  # by `stop`; nobody else cancels this task
        except OSError as error:
            log.debug("a GraphPipe connection broke: %s", error)
        finally:
            self._served -= is_served
            connection.abort()
            del self._connections[connection]


class _Connection:
    """One connection: a task that reads ahead, and this one, which answers."""

    def __init__(
        self, inferences: Inferences, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, door: str
    ) -> None:
        self._inferences = inferences
        self._reader = reader
        self._writer = writer
        self._door = door
        self._ahead: asyncio.Queue[bytearray | GraphPipeError | None] = asyncio.Queue(1)  # full: reading waits
        self._reading: asyncio.Task[None] | None = None
        self._begun = 0  # messages of which a byte is here, and which have not been answered
        self._is_ending = False

    async def run(self) -> None:
        """Answer until the client has nothing more to ask."""
        loop = asyncio.get_running_loop()
        self._reading = loop.create_task(self._read(), name="read graphpipe")
        try:
            while self._begun or not self._is_ending:
                message = await self._ahead.get()
                if message is None:
                    break
                if isinstance(message, GraphPipeError):
                    await self.refuse(message)
                    break
                answering = self._answer(message)
                message = None  # this frame waits for the next one, maybe for hours, and would keep it so long
                await self._write(await self._watched(answering))
                del answering
                self._begun -= 1
        finally:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await self._reading
        await self._close()

    async def refuse(self, error: GraphPipeError) -> None:
        """Say what is wrong; nothing more can be said on this connection then."""
        await self._write(self._inferences.refuse(error, door=self._door))
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):  # closing now would reset the connection, and that could overtake the response
            async with asyncio.timeout(_LINGER_S):
                while await self._reader.read(_READ_BYTES):
                    pass

    def end_when_idle(self) -> None:
        """End now, or when what has begun is answered."""
        self._is_ending = True
        if not self._begun and self._ahead.empty():
            self._ahead.put_nowait(None)

    def abort(self) -> None:
        """End now, without ceremony."""
        self._writer.transport.abort()

    async def _answer(self, message: bytearray) -> Response:
        inferences = self._inferences
        return await inferences.infer(inferences.first, message, door=self._door)

    async def _watched(self, answering: Coroutine[Any, Any, Response]) -> Response:
        """Give up an inference when the connection breaks meanwhile (G-075)."""
        assert self._reading is not None
        task = asyncio.get_running_loop().create_task(answering, name="answer graphpipe")
        try:
            await asyncio.wait((task, self._reading), return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and self._reading.exception() is None:
                await asyncio.wait((task,))  # the client has sent all it wants to
            if not task.done():
                self._reading.result()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    async def _read(self) -> None:
        """Read one message after the other; the last thing is None, or why there cannot be any more."""
        try:
            last = await self._read_all()
        except OSError:  # whoever answers sees that this task failed; whoever waits for a message has to be told
            if self._ahead.empty():
                self._ahead.put_nowait(None)
            raise
        await self._ahead.put(last)

    async def _read_all(self) -> GraphPipeError | None:
        """Read until the client ends; gives why there cannot be any more if that is an error."""
        while begin := await self._reader.read(_PREFIX_BYTES):  # for which it may take its time
            self._begun += 1
            try:
                message = await self._message(begin)
            except TimeoutError:
                log.info("a GraphPipe connection was too slow")
                return None
            except EOFError:  # G-018: nothing of it is invoked
                return None
            if isinstance(message, GraphPipeError):
                return message
            await self._ahead.put(message)
            del message  # the next one may be long in coming
        return None

    async def _message(self, begin: bytes) -> bytearray | GraphPipeError:
        """The message that begins like this, or why it is not read (G-017)."""
        until_s = asyncio.get_running_loop().time() + self._inferences.settings.body_s
        prefix = begin + await self._exactly(_PREFIX_BYTES - len(begin), until_s)
        (size,) = struct.unpack("<I", prefix)
        limit_bytes = self._inferences.limit_bytes
        if 0 < size <= limit_bytes:
            return await self._exactly(size, until_s)
        code = Code.TOO_LARGE if size else Code.MALFORMED
        return GraphPipeError(code, f"the message is said to have {size} bytes; it may have 1 to {limit_bytes}")

    async def _exactly(self, size: int, until_s: float) -> bytearray:
        """So many bytes.

        Args:
            size: How many.
            until_s: When they have to be there; later by what has come at the slowest speed (G-014).

        Raises:
            EOFError: The client ends before.
            TimeoutError: They do not come in time.
        """
        got = bytearray()
        while len(got) < size:
            async with asyncio.timeout_at(until_s + len(got) / self._inferences.settings.bytes_per_s):
                part = await self._reader.read(min(size - len(got), _READ_BYTES))
            if not part:
                raise EOFError
            got += part
        return got

    async def _write(self, response: Response) -> None:
        prefix = struct.pack("<I", response.size)
        if response.size <= _SMALL_BYTES:
            await self._send(b"".join((prefix, *response.pieces)))
            return
        self._writer.write(prefix)
        for piece in response.pieces:
            view = memoryview(piece)
            for at in range(0, len(view), _PIECE_BYTES):
                await self._send(view[at : at + _PIECE_BYTES])

    async def _send(self, data: bytes | memoryview) -> None:
        """Write; what is written before has to be taken within the limit."""
        self._writer.write(data)
        await self._taken()

    async def _taken(self) -> None:
        async with asyncio.timeout(self._inferences.settings.write_s):
            await self._writer.drain()

    async def _close(self) -> None:
        """Close once everything is taken."""
        self._writer.transport.set_write_buffer_limits(0)
        await self._taken()
        self._writer.close()
        async with asyncio.timeout(_CLOSE_S):
            await self._writer.wait_closed()
