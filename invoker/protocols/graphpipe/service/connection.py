"""`FramedConnection`: one connection of a bare GraphPipe socket, where each message follows its length.

Two more messages are read while one is answered, and no more (G-019). A client that has sent its last message may
half-close and wait. The running inference of a client that is gone is cancelled: a reset is noticed at once, as is the
end of a Unix socket; over TCP, a close looks like the end of the requests.

Before its first message a client may name the model that it asks (ADR 16): a length whose highest bit is set, and so
many bytes of UTF-8. Without a name it is the first model of the catalogue.
"""

from __future__ import annotations

import asyncio
import logging
import select
from contextlib import suppress
from typing import Any, Final

from invoker.core.budget import Unread
from invoker.errors import InvocationError, Overloaded, let_go
from invoker.execution.bodies.runner import later
from invoker.protocols.graphpipe.answer import Reply
from invoker.protocols.graphpipe.errors import translated
from invoker.protocols.graphpipe.service.inferences import Inferences
from invoker.protocols.graphpipe.wire import LENGTH, NAMED
from invoker.tensors import Code, GraphPipeError

log = logging.getLogger(__name__)

_READ_BYTES: Final = 1 << 18
_PIECE_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 1 << 16
_NAME_BYTES: Final = 1024
_CLOSE_S: Final = 5.0
_LINGER_S: Final = 1.0
_LOOK_S: Final = 0.25


class FramedConnection:
    """One connection. One task reads ahead, and the task that calls `run` answers.

    Args:
        inferences: Runs inferences with the named model, or the first one.
        reader: The bytes from the client.
        writer: The bytes to the client.
        transport: The name of the transport, for the log.
    """

    def __init__(
        self, inferences: Inferences, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, transport: str
    ) -> None:
        self._inferences = inferences
        self._reader = reader
        self._writer = writer
        self._transport = transport
        self._ahead: asyncio.Queue[bytearray | GraphPipeError | None] = asyncio.Queue(1)  # reading waits if full
        self._reading: asyncio.Task[None] | None = None
        self._begun = 0  # messages that have begun to arrive and are not yet answered
        self._is_ending = False
        self._model = inferences.first
        self._may_name = True
        self._answering: asyncio.Task[Any] | None = None  # the task that is cancelled to end the running inference
        self._looking: asyncio.TimerHandle | None = None
        self._share = inferences.share()
        self._held = 0  # bytes of messages that were read but not yet passed to an inference

    async def run(self) -> None:
        """Answer messages until the client sends no more.

        Raises:
            OSError: The connection broke, or the client is too slow.
        """
        loop = asyncio.get_running_loop()
        self._reading = loop.create_task(self._read(), name="read graphpipe")
        self._reading.add_done_callback(self._look)
        try:
            while self._begun or not self._is_ending:
                message = await self._ahead.get()
                if message is None:
                    break
                if isinstance(message, GraphPipeError):
                    await self.refuse(message)
                    break
                self._held -= len(message)
                self._share.shrink(self._held)
                response = await self._watched(message)
                message = None  # otherwise this variable would keep the message until the next one comes
                await self._write(response)
                del response
                self._begun -= 1
        finally:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await self._reading
            self._share.close()
        await self._close()

    async def refuse(self, error: GraphPipeError) -> None:
        """Send an error, after which the connection cannot be used any more."""
        await self._write(self._inferences.refuse(error, transport=self._transport))
        if self._writer.can_write_eof() and not self._writer.transport.is_closing():
            self._writer.write_eof()
        with suppress(TimeoutError):  # closing now would reset the connection, perhaps before the response is read
            async with asyncio.timeout(_LINGER_S):
                while await self._reader.read(_READ_BYTES):
                    pass

    def end_when_idle(self) -> None:
        """End the connection now, or when all begun messages are answered."""
        self._is_ending = True
        if not self._begun and self._ahead.empty():
            self._ahead.put_nowait(None)

    def abort(self) -> None:
        """Cut the connection at once, without sending written bytes."""
        self._writer.transport.abort()
        asyncio.get_running_loop().call_soon(
            self._forget
        )  # done after the reader was notified that the connection is lost

    def _forget(self) -> None:
        """Drop the bytes that were being written when the connection broke; the reader's error would keep them."""
        let_go(self._reader.exception())

    async def _watched(self, message: bytearray) -> Reply:
        """Answer a message, but stop when the client has gone meanwhile (G-013, G-075)."""
        self._answering = task = asyncio.current_task()
        assert task is not None, "a connection is run by a task"
        self._look_later()
        try:
            return await self._inferences.infer(self._model, message, transport=self._transport)
        except asyncio.CancelledError:
            if self._answering is not None or task.uncancel():
                raise
            raise ConnectionResetError("the client has gone before it was answered") from None
        finally:
            self._answering = None
            if self._looking is not None:
                self._looking.cancel()

    def _look_later(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self, _: object = None) -> None:
        """Cancel the running inference if its client has gone."""
        if self._answering is None:
            return
        if self._is_gone():
            task, self._answering = self._answering, None
            task.cancel()
        else:
            self._look_later()

    def _is_gone(self) -> bool:
        """Whether the client is gone. A client that has only half-closed still waits for answers."""
        assert self._reading is not None
        if self._writer.transport.is_closing() or (self._reading.done() and self._reading.exception() is not None):
            return True
        # The loop does not notice the end of a connection from which it does not read, so the socket is asked.
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), 0)
        return bool(poll.poll(0))

    async def _read(self) -> None:
        """Queue each message, then None, or the error that ends the reading."""
        try:
            last = await self._read_all()
        except OSError:  # an answering task sees that this one failed; one that waits for a message needs the None
            if self._ahead.empty():
                self._ahead.put_nowait(None)
            raise
        await self._ahead.put(last)

    async def _read_all(self) -> GraphPipeError | None:
        """Read until the client ends its side; return the error that ends the reading, if there is one."""
        while begin := await self._reader.read(LENGTH.size):  # without a time limit
            self._begun += 1
            try:
                message = await self._message(begin)
            except TimeoutError:
                log.info("a GraphPipe connection was too slow")
                return None
            except EOFError:  # G-018: an incomplete message is not invoked
                return None
            if isinstance(message, GraphPipeError):
                return message
            self._held += len(message)
            await self._ahead.put(message)
            del message  # otherwise it would be kept until the next one comes
        return None

    async def _message(self, begin: bytes) -> bytearray | GraphPipeError:
        """The message that begins with these bytes, or the error for which it is not read (G-017)."""
        until_s = asyncio.get_running_loop().time() + self._inferences.settings.body_s
        prefix = begin + await self._exactly(LENGTH.size - len(begin), until_s)
        (size,) = LENGTH.unpack(prefix)
        may_name, self._may_name = self._may_name, False
        if may_name and 0 < size - NAMED <= _NAME_BYTES:
            name = bytes(await self._exactly(size - NAMED, until_s)).decode(errors="replace")
            if (model := self._inferences.models.get(name)) is None:
                told = self._inferences.driver.engine.catalog.told
                there = f"; there are {', '.join(told)}" if told else ""
                return GraphPipeError(Code.MALFORMED, f"there is no model {name[:100]!a}{there}")
            self._model = model
            return await self._message(b"")
        limit_bytes = self._inferences.limit_bytes
        if 0 < size <= limit_bytes:
            try:
                return await self._exactly(size, until_s)
            except Overloaded as error:
                # at once, since otherwise others would be refused until this connection has ended
                self._share.shrink(self._held)
                return translated(error)
        code = Code.TOO_LARGE if size else Code.MALFORMED
        return GraphPipeError(code, f"the message announces {size} bytes; expected 1 to {limit_bytes}")

    async def _exactly(self, size: int, until_s: float) -> bytearray:
        """Read this many bytes.

        Args:
            size: How many bytes.
            until_s: When the bytes must have come. Each byte that comes extends this time, according to the slowest
                speed (G-014).

        Raises:
            EOFError: The client ends before.
            Overloaded: The process holds too much already.
            TimeoutError: The bytes do not come in time.
        """
        got = bytearray()
        while len(got) < size:
            async with asyncio.timeout_at(until_s + len(got) / self._inferences.settings.bytes_per_s):
                part = await self._reader.read(min(size - len(got), _READ_BYTES))
            if not part:
                raise EOFError
            got += part
            if self._held + len(got) > self._share.mark:
                self._share.grow(self._held + len(got))
        return got

    async def _write(self, response: Reply) -> None:
        self._check_open()
        prefix = LENGTH.pack(response.size)
        if response.size <= _SMALL_BYTES:
            await self._send(b"".join((prefix, *response.pieces)))
            return
        unread, loop = Unread(self._inferences.driver.engine.memory), asyncio.get_running_loop()
        unread.part()
        unread.hold(response.size, lambda error: later(loop, self._drop, error))
        try:
            await self._write_pieces(prefix, response)
        finally:
            unread.take()

    def _drop(self, error: InvocationError) -> None:
        log.info("a GraphPipe connection is ended, because its client reads nothing", extra={"detail": str(error)})
        self.abort()

    async def _write_pieces(self, prefix: bytes, response: Reply) -> None:
        self._writer.write(prefix)
        for piece in response.pieces:
            view = memoryview(piece)
            for at in range(0, len(view), _PIECE_BYTES):
                await self._send(view[at : at + _PIECE_BYTES])

    async def _send(self, data: bytes | memoryview) -> None:
        """Write; the client must take the earlier bytes within the limit."""
        self._check_open()
        self._writer.write(data)
        await self._taken()

    def _check_open(self) -> None:
        """Raise an error of the connection if it is lost.

        Otherwise a write would raise an error of uvloop that looks like a bug of the caller.

        Raises:
            ConnectionResetError: The connection is lost.
        """
        if self._writer.transport.is_closing():
            raise ConnectionResetError("the client has gone")

    async def _taken(self) -> None:
        if not self._writer.transport.get_write_buffer_size():
            return
        async with asyncio.timeout(self._inferences.settings.write_s):
            await self._writer.drain()

    async def _close(self) -> None:
        """Close the connection once the client has taken everything; raises TimeoutError if it does not."""
        self._check_open()
        self._writer.transport.set_write_buffer_limits(0)
        await self._taken()
        self._writer.close()
        async with asyncio.timeout(_CLOSE_S):
            await self._writer.wait_closed()
