"""`AsgiExchange`: a request from the ASGI server of a mounted transport."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, TypeAlias

from invoker.core.budget import ProcessBudget
from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.core.peers import LEFT, peer_of
from invoker.errors import InvocationError
from invoker.transports.http.exchange import Exchange, HttpSettings, Listener
from invoker.transports.http.response_packing import begun, flushed, packed
from invoker.transports.http.unpacking import STEPS, Unpacker
from invoker.transports.http.writing import ALWAYS, BODILESS, PIECE_BYTES, fields_of, parts_of, size_of

log = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_WATCH_S = 0.1
"""Seconds after which a task watches whether the client leaves; for shorter requests a task would cost more than it
saves."""
_HIGH_BYTES = 64 * 1024
"""How many bytes of a streamed response may wait for the server to take them."""


class AsgiExchange(Exchange):
    """One ASGI request, and the response to it.

    Two tasks serve a request with a listener: this one reads, and the request's own task writes.

    Args:
        head: Everything but the body.
        scope: The scope of the request.
        receive: The ASGI ``receive`` of the request.
        send: The ASGI ``send`` of the request.
        settings: Limits.
        memory: Counts the body; None: no memory is counted.
        packed: The codings of the body.

    Attributes:
        headers: The headers to be added to the response; they replace those of the same name.
    """

    def __init__(
        self,
        head: RequestHead,
        scope: Scope,
        receive: Receive,
        send: Send,
        settings: HttpSettings,
        memory: ProcessBudget | None = None,
        packed: tuple[str, ...] = (),
    ) -> None:
        super().__init__(head, settings, memory, packed)
        self.peer.address = peer_of(scope.get("client"))
        self._receive = receive
        self._send = send
        self._watch_timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self._listener: Listener | None = None
        self._response: Response | None = None
        self._head: ResponseHead | None = None
        self._out: deque[bytes | Iterator[bytes]] = deque()
        self._size = 0
        self._is_over = self._is_cut = False
        self._is_run = False
        self._carrier: asyncio.Task[None] | None = None
        self._wants = asyncio.Event()  # the listener counts the body
        self._answered = asyncio.Event()
        self._changed = asyncio.Event()  # set when there are bytes to write, or at the end
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def run(self, begin: Callable[[Exchange], Listener]) -> Response | None:
        """Let a listener answer; returns a whole response, or None once a streamed response is written."""
        self._is_run = True
        reading: asyncio.Task[None] | None = None
        try:
            self._listener = begin(self)
            self._wants.set()
            if not self._answered.is_set():
                reading = asyncio.get_running_loop().create_task(self._bring(self._listener), name="body")
                await self._answered.wait()
            if self._head is not None and not self.is_gone:
                await self._carry(self._head)
        except BaseException:
            self._leave()
            raise
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.wait([reading])
            self._listener = None  # the listener refers to this exchange
            if self.untaken is not None:
                self.untaken.take()
            self.close()
        return None if self.is_gone else self._response

    async def carried(self) -> None:
        """Wait until the streamed response that a handler has begun is written; cut it if it was not ended."""
        if self._carrier is not None:
            if not self._is_over:
                self.cut()
            await self._carrier

    def ask(self) -> None:
        """Continue to read the body, by the next ``receive``."""
        self._wants.set()

    def answer(self, response: Response) -> None:
        """Write a whole response, unless the client has left; once."""
        self._response = response
        self.peer.got(response.status)
        self._over()

    def begin(self, head: ResponseHead) -> None:
        """Write the head of a streamed response."""
        self._head = head
        self.peer.got(head.status)
        self._answered.set()
        if not self._is_run and not self.is_gone:
            self._task = self._task or asyncio.current_task()
            self._begin_watch()
            self._carrier = asyncio.get_running_loop().create_task(self._carry(head), name="response")

    def write(self, data: bytes | Iterator[bytes]) -> bool:
        """Write a piece of the body; False when the next one should wait for `room`."""
        if data and not (self.is_gone or self._is_over):
            self._out.append(data)
            self._size += len(data) if isinstance(data, bytes) else _HIGH_BYTES
            if self._size >= _HIGH_BYTES:
                self._has_room.clear()
            self._changed.set()
        return self._has_room.is_set()

    async def room(self) -> None:
        """Wait until the client has taken most of the written bytes, or has left."""
        await self._has_room.wait()

    def end(self) -> None:
        """End the streamed response, which is complete."""
        self._over()

    def cut(self) -> None:
        """End the streamed response so that the client sees that it is not complete."""
        if not self._is_over:
            self._is_cut = True
            self._over()

    def _over(self) -> None:
        self._is_over = True
        self._stop_timing()
        self._answered.set()
        self._changed.set()

    @property
    def _is_broken_off(self) -> bool:
        return self.is_gone or self._is_cut

    def _leave(self) -> None:
        if self.is_gone:
            return
        self.is_gone = True
        self.peer.got(LEFT)
        self._has_room.set()
        self._answered.set()
        self._changed.set()
        if self._listener is not None:
            self._listener.gone()

    async def _bring(self, listener: Listener) -> None:
        """Give the listener the body, at the pace that it wants; then watch whether the client leaves."""
        while True:
            if not self._is_over and not self._is_complete:
                await self._wants.wait()
                self._begin_timing()
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._leave()
                return
            if self._is_complete:
                continue
            self._is_complete = not message.get("more_body", False)
            if self._is_over:
                continue
            try:
                if self._unpacker is None:
                    self._hear(listener, message.get("body", b""))
                else:
                    await self._hear_packed(listener, message.get("body", b""), self._unpacker)
            except InvocationError as error:
                listener.fail(error)

    def _hear(self, listener: Listener, body: bytes) -> None:
        if body:
            self._count(body)
            if not listener.arrived(BodyChunk(body)):
                self._wants.clear()
                self._stop_timing()
        if self._is_complete and not self._is_over:
            self._stop_timing()
            listener.arrived(None)

    async def _hear_packed(self, listener: Listener, body: bytes, unpacker: Unpacker) -> None:
        self._received += len(body)
        unpacker.feed(body)
        while not self._is_over:
            await self._wants.wait()
            await asyncio.sleep(0)  # let other tasks run, since few bytes may unpack to very many
            piece = unpacker.steps(STEPS)
            if piece is None:
                break
            if piece:
                self._count_unpacked(piece)
                if not listener.arrived(BodyChunk(piece)):
                    self._wants.clear()
                    self._stop_timing()
        if self._is_complete and not self._is_over:
            unpacker.close()
            self._is_unpacked = True
            self._stop_timing()
            listener.arrived(None)

    def _is_due(self) -> None:
        if self._listener is None:
            super()._is_due()
        else:
            self.is_late = True
            self._listener.fail(self._late())

    async def _carry(self, head: ResponseHead) -> None:
        """Write a streamed response, all waiting pieces at a time, until it is over."""
        loop, out = asyncio.get_running_loop(), self._out
        head, packer = begun(head, self.choice)
        fields = fields_of(head.headers, (*self.headers, *ALWAYS))
        write_s = self._settings.write_s
        try:
            async with asyncio.timeout(write_s) as limit:
                await self._send({"type": "http.response.start", "status": head.status, "headers": fields})
                while not self.is_gone:
                    if out:
                        for body in _next_of(out):
                            limit.reschedule(None)
                            if packer is not None:
                                body = await flushed(packer, body)  # noqa: PLW2901 - it is the same, packed
                            limit.reschedule(loop.time() + write_s)
                            await self._send({"type": "http.response.body", "body": body, "more_body": True})
                            if self._is_broken_off:
                                break
                        if not out:
                            if self.untaken is not None:
                                self.untaken.take()
                            self._size = 0
                            self._has_room.set()
                    elif self._is_over:
                        break
                    else:
                        limit.reschedule(None)
                        self._changed.clear()
                        await self._changed.wait()
                if not (self._is_cut or self.is_gone):  # an ASGI server cuts an incomplete response by itself
                    last = packer.end() if packer is not None else b""
                    await self._send({"type": "http.response.body", "body": last, "more_body": False})
        except TimeoutError:
            log.warning("a client did not read its response within %s s", write_s)
            self._leave()
        except OSError:  # some servers raise this when the client has left
            self._leave()

    async def respond(self, response: Response) -> None:
        """Write a whole response, then read and drop the rest of the body."""
        self.peer.got(response.status)
        response = await packed(response, self.choice, self.head)
        self.count(size_of(response))
        if self.untaken is None:
            await self._respond(response)
            return
        self.untaken.part()
        try:
            await self._respond(response)
        finally:
            self.untaken.take()

    def _drop(self, error: InvocationError) -> None:
        log.info("a stream is ended, because its client reads nothing", extra={"detail": str(error)})
        self._leave()

    async def _respond(self, response: Response) -> None:
        fields = fields_of(response.headers, (*self.headers, *ALWAYS))
        if response.status not in BODILESS:
            fields.append((b"content-length", b"%d" % size_of(response)))
        try:
            async with asyncio.timeout(self._settings.write_s) as limit:
                await self._send({"type": "http.response.start", "status": response.status, "headers": fields})
                is_short = not response.pieces and len(response.body) <= PIECE_BYTES
                parts = iter((response.body,)) if is_short else parts_of(response)
                body = next(parts)
                for following in parts:
                    await self._send({"type": "http.response.body", "body": body, "more_body": True})
                    body = following
                    limit.reschedule(asyncio.get_running_loop().time() + self._settings.write_s)
                await self._send({"type": "http.response.body", "body": body, "more_body": not self._is_complete})
        except TimeoutError:
            log.warning("a client did not read its response within %s s", self._settings.write_s)
            return
        except OSError:  # some servers raise this when the client has left
            return
        if not self._is_complete:
            await self._linger()

    async def _linger(self) -> None:
        """Read and drop the rest of the body, for as long as a client may take to read its response.

        Other tasks run meanwhile.
        """
        try:
            async with asyncio.timeout(self._settings.write_s):
                while not self._is_complete:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        return
                    self._is_complete = not message.get("more_body", False)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):
            return  # the server ends the response, or the client has left

    def uncancel(self) -> None:
        """Note that the request was cancelled because its client has left (R-154, G-013)."""
        if self._task is not None:
            self._task.uncancel()

    def close(self) -> None:
        """Stop watching the client, and release the memory, since the request is answered or dropped."""
        super().close()
        if self._watch_timer is not None:
            self._watch_timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    async def _next(self) -> bytes:
        self._begin_timing()
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.is_gone = True
            return b""
        self._is_complete = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    def _completed(self) -> None:
        """Watch whether the client leaves, after a moment; a request that is answered by then needs no task."""
        super()._completed()
        self._watch_timer = asyncio.get_running_loop().call_later(_WATCH_S, self._begin_watch)

    def _begin_watch(self) -> None:
        if self._watcher is not None:
            return
        self._watcher = asyncio.get_running_loop().create_task(self._cancel_when_gone(), name="watch")

    async def _cancel_when_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()
        if self._task is not None:
            self._task.cancel()


def _next_of(out: deque[bytes | Iterator[bytes]]) -> Iterator[bytes]:
    """Take all short pieces joined, or the parts of one long piece."""
    if not isinstance(out[0], bytes):
        return out.popleft()  # type: ignore[return-value]  # it is not bytes
    parts: list[bytes] = []
    while out and isinstance(out[0], bytes):
        parts.append(out.popleft())  # type: ignore[arg-type]  # it is bytes
    return iter((parts[0] if len(parts) == 1 else b"".join(parts),))
