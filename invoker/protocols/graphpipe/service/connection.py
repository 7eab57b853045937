"""`FramedConnection`: one connection to a raw GraphPipe socket, on which each message follows its length.

While one message is answered, two more are read (G-019). A client may half-close after its last message and wait. If a
client leaves, its running inference is cancelled: a reset, and the close of a Unix socket, are noticed at once; over
TCP, a close cannot be distinguished from a half-close.

Before its first message a client may name a model (ADR 16): it sends a length whose highest bit is set, and then this
many bytes of UTF-8. Without a name it gets the first model of the catalogue.
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
    """One connection: one task reads ahead, and the task that calls `run` answers.

    Args:
        inferences: Runs the inferences.
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
        self._ahead: asyncio.Queue[bytearray | GraphPipeError | None] = asyncio.Queue(1)  # if it is full, reading waits
        self._reading: asyncio.Task[None] | None = None
        self._begun = 0  # how many messages have begun to arrive and are not answered yet
        self._is_ending = False
        self._model = inferences.first
        self._may_name = True
        self._answering: asyncio.Task[Any] | None = None  # the task to cancel, in order to end the running inference
        self._looking: asyncio.TimerHandle | None = None
        self._share = inferences.share()
        self._held = 0  # how many bytes of messages were read but not passed to an inference yet

    async def run(self) -> None:
        """Answer messages until the client sends no more.

        Raises:
            OSError: The connection was lost, or the client is too slow.
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
                message = None  # otherwise the variable would keep the message until the next one comes
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
        """Send an error, and end the connection."""
        await self._write(self._inferences.refuse(error, transport=self._transport))
        if self._writer.can_write_eof() and not self._writer.transport.is_closing():
            self._writer.write_eof()
        with suppress(TimeoutError):  # a close now could reset the connection before the client has read the response
            async with asyncio.timeout(_LINGER_S):
                while await self._reader.read(_READ_BYTES):
                    pass

    def end_when_idle(self) -> None:
        """End the connection as soon as all messages that have begun to arrive are answered."""
        self._is_ending = True
        if not self._begun and self._ahead.empty():
            self._ahead.put_nowait(None)

    def abort(self) -> None:
        """Close the connection at once, without sending buffered bytes."""
        self._writer.transport.abort()
        asyncio.get_running_loop().call_soon(
            self._forget
        )  # runs after the reader was notified of the loss of the connection

    def _forget(self) -> None:
        """Drop the bytes that were not sent when the connection was lost; the reader's error would keep them."""
        let_go(self._reader.exception())

    async def _watched(self, message: bytearray) -> Reply:
        """Answer a message; cancel the inference if the client leaves meanwhile (G-013, G-075)."""
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
        """Cancel the running inference if its client has left."""
        if self._answering is None:
            return
        if self._is_gone():
            task, self._answering = self._answering, None
            task.cancel()
        else:
            self._look_later()

    def _is_gone(self) -> bool:
        """Whether the client has left; a client that has only half-closed still waits for responses."""
        assert self._reading is not None
        if self._writer.transport.is_closing() or (self._reading.done() and self._reading.exception() is not None):
            return True
        # asyncio does not notice the end of a connection while reading is paused, so the socket is checked.
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), 0)
        return bool(poll.poll(0))

    async def _read(self) -> None:
        """Queue each message, then None, or the error that ends the reading."""
        try:
            last = await self._read_all()
        # a task that is answering sees that this task failed; a task that waits for a message needs the None
        except OSError:
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
            del message  # otherwise the variable would keep the message until the next one comes
        return None

    async def _message(self, begin: bytes) -> bytearray | GraphPipeError:
        """Read the message that begins with these bytes; returns an error if it is refused (G-017)."""
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
                # releases the memory now; otherwise other clients would be refused until this connection ends
                self._share.shrink(self._held)
                return translated(error)
        code = Code.TOO_LARGE if size else Code.MALFORMED
        return GraphPipeError(code, f"the message announces {size} bytes; expected 1 to {limit_bytes}")

    async def _exactly(self, size: int, until_s: float) -> bytearray:
        """Read exactly this many bytes.

        Args:
            size: How many bytes.
            until_s: The time by which the bytes must have come; each received byte extends it, by the slowest allowed
                speed (G-014).

        Raises:
            EOFError: The client closed before.
            Overloaded: The process already holds too many bytes.
            TimeoutError: The bytes did not come in time.
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
        """Write bytes; the client must take the earlier ones within the time limit."""
        self._check_open()
        self._writer.write(data)
        await self._taken()

    def _check_open(self) -> None:
        """Raise an error if the connection is lost.

        Without this, a write would raise an error of uvloop that looks like a bug of the caller.

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
        """Close the connection after the client has taken all bytes; raises TimeoutError if it does not."""
        self._check_open()
        self._writer.transport.set_write_buffer_limits(0)
        await self._taken()
        self._writer.close()
        async with asyncio.timeout(_CLOSE_S):
            await self._writer.wait_closed()
