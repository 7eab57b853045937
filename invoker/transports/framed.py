"""GraphPipe on bare sockets: TCP and Unix ones, each message behind its length (G-016).

A message is a FlatBuffer with size prefix: four bytes little-endian that say how long it is, then the buffer; both
ways. Requests of a connection are answered in order, one at a time; while one runs, the next two are read, and no more
(G-019): whoever sends on is stopped by his own socket. A client may half-close after its last request; one whose
connection breaks loses the inference under way.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
import stat
import struct
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from invoker.errors import StartupError
from invoker.protocols.graphpipe.answer import Response, refusal
from invoker.tensors import Code, GraphPipeError
from invoker.transports.inferences import Inferences

__all__ = ["FramedDoor"]

log = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_READ_BYTES: Final = 1 << 18
_PIECE_BYTES: Final = 1 << 20
_PREFIX_BYTES: Final = 4
_CLOSE_S: Final = 5.0
_LINGER_S: Final = 1.0


class FramedDoor:
    """Serves the first model of some inferences on one address.

    Args:
        inferences: Runs them.
        address: ``host:port``, or the path of a Unix socket.
        is_unix: Which of the two.
        tls: For TCP; None serves plain text.
        share_port: Whether other processes may bind the same port.
    """

    def __init__(
        self,
        inferences: Inferences,
        address: str,
        *,
        is_unix: bool = False,
        tls: ssl.SSLContext | None = None,
        share_port: bool = False,
    ) -> None:
        self._inferences = inferences
        self._address = address
        self._is_unix = is_unix
        self._tls = tls
        self._share_port = share_port
        self._server: asyncio.Server | None = None
        self._connections: dict[_Connection, asyncio.Task[Any]] = {}

    async def start(self) -> str:
        """Bind, and begin to answer.

        Returns:
            The address, with the port that was taken.

        Raises:
            StartupError: It cannot be bound.
        """
        try:
            if self._is_unix:
                _unlink_stale(self._address)
                self._server = await asyncio.start_unix_server(self._connected, self._address, backlog=_BACKLOG)
                return self._address
            host, _, port = self._address.rpartition(":")
            self._server = await asyncio.start_server(
                self._connected,
                host.strip("[]") or None,
                int(port),
                backlog=_BACKLOG,
                ssl=self._tls,
                reuse_address=True,
                reuse_port=self._share_port or None,
            )
        except OSError as error:
            knob = "--graphpipe-unix" if self._is_unix else "--graphpipe-tcp"
            why = error.strerror or str(error)
            raise StartupError(f"cannot listen on {self._address} for GraphPipe: {why}; set {knob}") from None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def leave(self) -> None:
        """Accept no more; connections end when nothing of theirs is left to answer."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.end_when_idle()

    async def stop(self, grace_s: float) -> None:
        """Accept no more; requests under way have ``grace_s`` before their connections are cut. Idempotent."""
        self.leave()
        if self._connections:
            await asyncio.wait(list(self._connections.values()), timeout=grace_s)
        left = dict(self._connections)
        for connection, task in left.items():
            connection.abort()
            task.cancel()
        if left:
            log.warning("%s GraphPipe connections were cut", len(left))
            await asyncio.wait(list(left.values()), timeout=_CLOSE_S)
        if self._is_unix and self._server is not None:
            _unlink(self._address)
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # asyncio runs this in a task of its own
        connection = _Connection(self._inferences, reader, writer)
        self._connections[connection] = task
        try:
            await connection.run()
        except asyncio.CancelledError:
            log.debug("a GraphPipe connection was cut")  # by `stop`; nobody else cancels this task
        except OSError as error:
            log.debug("a GraphPipe connection broke: %s", error)
        finally:
            connection.abort()
            del self._connections[connection]


class _Connection:
    """One connection: a task that reads ahead, and this one, which answers."""

    def __init__(self, inferences: Inferences, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._inferences = inferences
        self._reader = reader
        self._writer = writer
        self._ahead: asyncio.Queue[bytearray | GraphPipeError | None] = asyncio.Queue(1)  # full: reading waits
        self._reading: asyncio.Task[None] | None = None
        self._is_idle = True
        self._is_ending = False

    async def run(self) -> None:
        """Answer until the client has nothing more to ask."""
        loop = asyncio.get_running_loop()
        self._reading = loop.create_task(self._read(), name="read graphpipe")
        try:
            while not self._is_ending:
                self._is_idle = self._ahead.empty()
                message = await self._ahead.get()
                self._is_idle = False
                if message is None:
                    break
                if isinstance(message, GraphPipeError):
                    await self._write(refusal(message))
                    await self._linger()
                    break
                await self._write(await self._watched(self._answer(message)))
        finally:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await self._reading
        self._writer.close()
        async with asyncio.timeout(_CLOSE_S):
            await self._writer.wait_closed()

    def end_when_idle(self) -> None:
        """End now, or with the request under way."""
        self._is_ending = True
        if self._is_idle and self._ahead.empty():
            self._ahead.put_nowait(None)

    def abort(self) -> None:
        """End now, without ceremony."""
        self._writer.transport.abort()

    async def _answer(self, message: bytearray) -> Response:
        inferences = self._inferences
        return await inferences.infer(inferences.first, message, door="socket")

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
        limit_bytes = self._inferences.limit_bytes
        while True:
            try:
                prefix = await self._exactly(_PREFIX_BYTES, is_begun=False)
                if prefix is None:
                    return None
                (size,) = struct.unpack("<I", prefix)
                if size == 0 or size > limit_bytes:  # G-017
                    code = Code.TOO_LARGE if size else Code.MALFORMED
                    detail = f"the message is said to have {size} bytes; it may have 1 to {limit_bytes}"
                    return GraphPipeError(code, detail)
                message = await self._exactly(size, is_begun=True)
            except TimeoutError:
                log.info("a GraphPipe connection was too slow")
                return None
            if message is None:
                return None  # G-018: nothing of it is invoked
            await self._ahead.put(message)

    async def _exactly(self, size: int, *, is_begun: bool) -> bytearray | None:
        """So many bytes; None if the client ends before.

        Args:
            size: How many.
            is_begun: Whether the message has begun, so that what is missing has to come in time (G-014).

        Raises:
            TimeoutError: It does not.
        """
        settings, loop = self._inferences.settings, asyncio.get_running_loop()
        got, began = bytearray(), loop.time()
        while len(got) < size:
            until = began + settings.body_s + len(got) / settings.bytes_per_s
            async with asyncio.timeout_at(until if is_begun else None):
                part = await self._reader.read(min(size - len(got), _READ_BYTES))
            if not part:
                return None
            if not is_begun:
                is_begun, began = True, loop.time()
            got += part
        return got

    async def _write(self, response: Response) -> None:
        writer = self._writer
        async with asyncio.timeout(self._inferences.settings.write_s):
            writer.write(struct.pack("<I", response.size))
            for piece in response.pieces:
                view = memoryview(piece)
                for at in range(0, len(view), _PIECE_BYTES):
                    writer.write(view[at : at + _PIECE_BYTES])
                    await writer.drain()

    async def _linger(self) -> None:
        """Drop what still comes: closing now would reset the connection, and that could overtake the response."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while await self._reader.read(_READ_BYTES):
                    pass


def _unlink(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()


def _unlink_stale(path: str) -> None:
    """Remove a socket that nobody listens on any more; anything else that is in the way is an error.

    Raises:
        OSError: Somebody listens there, or it is no socket.
    """
    try:
        if not stat.S_ISSOCK(Path(path).stat().st_mode):
            return  # binding will say that the address is in use
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
