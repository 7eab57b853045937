"""`Request`: one request of HTTP/1.1. Its connection passes it the body, and reads only as much as is wanted.

A handler reads the body in a task; or a listener gets the body by callbacks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from invoker.core.budget import ProcessBudget
from invoker.core.http import BodyChunk, Response, ResponseHead
from invoker.core.peers import LEFT
from invoker.errors import InvocationError
from invoker.transports.http.exchange import NOBODY, Exchange, HttpSettings, Listener
from invoker.transports.http.heads import Head
from invoker.transports.http.packing import LEAST_BYTES, Packer
from invoker.transports.http.response_packing import begun, packed, ready
from invoker.transports.http.unpacking import STEPS, Unpacker
from invoker.transports.http.writing import size_of

log = logging.getLogger(__name__)

HIGH_BYTES = 64 * 1024
"""How many bytes are read ahead of the code that reads them."""


class BodySource(Protocol):
    """The connection of a request: it gives the body and writes the response."""

    peer: str

    def ask(self) -> None:
        """Read more of the body, because the request waits for it."""

    def answered(self, request: Request, response: Response) -> None:
        """Send the response of a request with a listener."""

    def begun(self, request: Request, head: ResponseHead) -> None:
        """Send the head of a streamed response."""

    def streamed(self, data: bytes | Iterator[bytes]) -> bool:
        """Write a piece of the streamed body; returns whether the client takes more at once."""

    def ended(self, *, is_whole: bool) -> None:
        """End the body of a streamed response; if it is not whole, the client must notice it."""

    def leave_to(self, take: Callable[[asyncio.Transport, bytes], None]) -> None:
        """Pass the connection on to another protocol, with the bytes that were read."""

    def abort(self) -> None:
        """End the connection now, without a last message to the client."""


class Request(Exchange):
    """One HTTP request, and the response to it.

    Args:
        head: The head of the request.
        source: The connection from which the body comes.
        settings: Limits.
        memory: Counts the body.
        packed: The codings of the body.

    Attributes:
        meaning: The result of parsing the head.
        is_whole: Whether all of the body has come.
        task: The task that answers it, if a task reads its body.
        unread: Bytes of the body that are not yet asked for.
        headers: The headers to be added to the response.
        packer: Packs the body of a streamed response; None: it is sent unchanged.
    """

    def __init__(
        self,
        head: Head,
        source: BodySource,
        settings: HttpSettings,
        memory: ProcessBudget,
        packed: tuple[str, ...] = (),
    ) -> None:
        super().__init__(head.request, settings, memory, packed)
        self.meaning, self.peer.address = head, source.peer
        self.is_whole = False
        self.task: asyncio.Task[None] | None = None
        self.unread = 0
        self.headers: tuple[tuple[str, str], ...] = ()
        self.packer: Packer | None = None
        self._source = source
        self._listener: Listener | None = None
        self._is_held = False  # whether the listener has paused reading
        self._is_answered = False
        self._has_begun = False
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._for_room: asyncio.Future[None] | None = None
        self._is_turning = False  # whether a callback that unpacks more is scheduled

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """Take more of the body, which has come."""
        if data:
            self._parts.append(data)
            self.unread += len(data)
        self.is_whole = is_last
        if self._listener is not None:
            self._pass_on(self._listener)
        elif self._waiter is not None:
            self._wake()

    def leave(self) -> None:
        """Notify the reader of the body that the client has left.

        If no reader waits, cancel the task (R-154, G-013).
        """
        self.is_gone = True
        self.peer.got(LEFT)
        self.has_room()
        if self._listener is not None:
            self._listener.gone()
        elif self._waiter is not None:
            self._wake()
        elif self.task is not None:
            self.task.cancel()

    def listen(self, listener: Listener) -> None:
        """Give the body to a listener as it comes."""
        self._listener = listener
        self._pass_on(listener)

    def body(self) -> bytes:
        """The bytes of the body that have come and were not passed on."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0] if self._parts else b""

    def attend(self, listener: Listener) -> None:
        """Notify a listener that has taken the whole body if the client leaves."""
        self._parts, self.unread = [], 0
        self._is_complete = True
        self._listener = listener

    def ask(self) -> None:
        """Continue to pass the body on, since the listener wants more of it."""
        self._is_held = False
        if self._listener is not None:
            self._pass_on(self._listener)

    def answer(self, response: Response) -> None:
        """Write the response, unless the client has left; once."""
        self._finish()
        if not self.is_gone:
            self.respond(response)

    def respond(self, response: Response) -> None:
        """Write the response, in the coding that the client prefers."""
        peer = self.peer
        peer.number = peer.number or response.status
        if (
            response.status == 200
            and len(response.body) < LEAST_BYTES
            and not (response.pieces or self.choice.is_forced)
        ):
            self._source.answered(self, response)  # the response is too short to be packed or counted
            return
        self.count(size_of(response))
        at_once = ready(response, self.choice, self.head)
        if at_once is not None:
            self._source.answered(self, at_once)
        else:
            self.task = asyncio.get_running_loop().create_task(self._pack(response), name="packing")

    async def _pack(self, response: Response) -> None:
        """Pack a long response in a thread, and write it."""
        try:
            response = await packed(response, self.choice, self.head)
        finally:
            self._source.answered(self, response)  # also if the client has left

    def begin(self, head: ResponseHead) -> None:
        """Write the head of a streamed response."""
        if not self.is_gone:
            self._has_begun = True
            self.peer.got(head.status)
            head, self.packer = begun(head, self.choice)
            self._source.begun(self, head)

    def write(self, data: bytes | Iterator[bytes]) -> bool:
        """Write a piece of the body; False when the next one should wait for `room`."""
        return self.is_gone or self._source.streamed(data)

    async def room(self) -> None:
        """Wait until the client has taken most of the written bytes, or has left."""
        while not self.is_gone and not self._source.streamed(b""):
            if self._for_room is None:
                self._for_room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._for_room)  # several outputs may wait

    def has_room(self) -> None:
        """Wake the tasks that wait for room."""
        waiter, self._for_room = self._for_room, None
        if waiter is not None:
            waiter.set_result(None)

    def end(self) -> None:
        """End the streamed response, which is complete."""
        self._over(is_whole=True)

    def cut(self) -> None:
        """End the streamed response so that the client sees that it is not complete."""
        self._over(is_whole=False)

    def _finish(self) -> None:
        """Release the listener, since the request is over."""
        self._is_answered = True
        if self._listener is not None:
            self._listener = NOBODY
        if self._share is not None or self._late_timer is not None:
            self.close()

    def _over(self, *, is_whole: bool) -> None:
        if self._is_answered:
            return
        self._finish()
        if self.untaken is not None:
            self.untaken.part()
        if not self.is_gone and self._has_begun:
            self._source.ended(is_whole=is_whole)

    def switch(self, take: Callable[[asyncio.Transport, bytes], None]) -> None:
        """Answer by passing the connection on to another protocol, which writes the response."""
        self._finish()
        self._source.leave_to(take)

    def _pass_on(self, listener: Listener) -> None:
        """Give the listener the bytes that have come, as long as it wants them."""
        if self._unpacker is not None and not self._is_unpacked and not self._unpack(listener, self._unpacker):
            return
        while self._parts and not (self._is_answered or self._is_held):
            body = self._parts.pop(0)
            self.unread -= len(body)
            try:
                self._count(body)
            except InvocationError as error:
                listener.fail(error)
                return
            self._is_held = not listener.arrived(BodyChunk(body))
        if self._is_answered or self._is_held:
            self._stop_timing()
        elif self.is_whole:
            self._completed()
            if not self._is_complete:
                self._is_complete = True
                listener.arrived(None)
        else:
            self._begin_timing()
            self._source.ask()

    def _unpack(self, listener: Listener, unpacker: Unpacker) -> bool:
        """Give the listener the unpacked bytes; returns whether nothing more can be unpacked now."""
        try:
            for _ in range(STEPS):
                if self._is_answered or self._is_held:
                    return True
                piece = unpacker.take()
                if piece:
                    self._count_unpacked(piece)
                    self._is_held = not listener.arrived(BodyChunk(piece))
                elif piece is None and self._parts:
                    body = self._parts.pop(0)
                    self.unread -= len(body)
                    self._received += len(body)
                    unpacker.feed(body)
                elif piece is None:
                    if self.is_whole:
                        unpacker.close()
                        self._is_unpacked = True
                    return True
        except InvocationError as error:
            listener.fail(error)
            return False
        # Few bytes may unpack to very many, so let other tasks run.
        self._stop_timing()
        if not self._is_turning:
            self._is_turning = True
            asyncio.get_running_loop().call_soon(self._turn)
        return False

    def _turn(self) -> None:
        self._is_turning = False
        if self._listener is not None and not self.is_gone:
            self._pass_on(self._listener)

    def _is_due(self) -> None:
        if self._listener is None:
            super()._is_due()
        else:
            self.is_late = True
            self._listener.fail(self._late())

    def _drop(self, error: InvocationError) -> None:
        log.info("a connection is ended, because its client reads nothing", extra={"detail": str(error)})
        self._source.abort()

    async def _next(self) -> bytes:
        while not (self._parts or self.is_whole or self.is_gone):
            self._begin_timing()
            self._source.ask()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        parts, self._parts = self._parts, []
        self.unread = 0
        self._is_complete = self.is_whole
        if not self._is_complete:
            self._source.ask()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
