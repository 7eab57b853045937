"""`Exchange`: one request of the HTTP door, whichever protocol answers it.

It reads the body within its time, watches for a client that leaves, and writes the response, long ones in parts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from invoker.core.budget import ProcessBudget
from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.doors.http.heads import text_of
from invoker.doors.http.writing import ALWAYS, BODILESS, PIECE_BYTES, fields_of, parts_of, size_of
from invoker.errors import Cancelled, DeadlineExceeded

__all__ = ["Exchange", "HttpSettings", "Receive", "Scope", "Send", "head_of"]

log = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_WATCH_S = 0.1
"""Only requests that take longer are watched for clients that leave: a task for each shorter one would cost more."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How requests are treated.

    Attributes:
        idle_s: A connection without a request under way ends after so long; a head must come within it, too.
        body_s: A body may take this long, and longer by what it has brought at ``body_bytes_per_s``, else 408.
        body_bytes_per_s: The slowest upload that is tolerated.
        write_s: A client that takes nothing of its response for so long, MiB by MiB, loses its connection.
        linger_s: How long the rest of a refused body is read and dropped, so that its sender gets to see the refusal.
        origins: Of web pages that may call; see `Origins`.
        hosts: Names for a door that is bound to loopback; see `Origins`.
    """

    idle_s: float = 30.0
    body_s: float = 30.0
    body_bytes_per_s: float = 1024.0
    write_s: float = 60.0
    linger_s: float = 5.0
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class Exchange:
    """One ASGI request: its head, its body, and the response to it.

    Attributes:
        path: Of the request.
        is_gone: Whether the client has left.
        is_late: Whether the body came too slowly.
        share: What the body takes of the process's memory, until the response is made.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, settings: HttpSettings, memory: ProcessBudget | None = None
    ) -> None:
        self.path = _path(scope)
        self.is_gone = False
        self.is_late = False
        self.share = (memory or ProcessBudget()).share()
        self._scope = scope
        self._receive = receive
        self._send = send
        self._settings = settings
        self._is_headed = False
        self._is_complete = False
        self._received = 0
        self._started_s = asyncio.get_running_loop().time()
        self._task: asyncio.Task[Any] | None = None  # that reads the body; it is cancelled when the client leaves
        self._is_reading = False
        self._late_timer: asyncio.TimerHandle | None = None
        self._watch_timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None

    @property
    def head(self) -> RequestHead:
        """Everything but the body."""
        return head_of(self._scope)

    async def read(self) -> RequestHead | BodyChunk | None:
        """The head, then the body's chunks, then None.

        Raises:
            Cancelled: The client has left.
            DeadlineExceeded: The body comes too slowly (408).
            Overloaded: The process holds too much already (503).
        """
        if not self._is_headed:
            self._is_headed = True
            return self.head
        while not self._is_complete:
            body = await self._body()
            if body:
                return BodyChunk(body)
        self._watch()
        return None

    async def whole(self, most_bytes: int) -> bytearray | None:
        """The whole body, instead of its chunks; None as soon as it has more than so many bytes.

        It grows as it comes: memory is taken for what was sent, not for what was announced.

        Raises:
            Cancelled: The client has left.
            DeadlineExceeded: The body comes too slowly (408).
            Overloaded: The process holds too much already (503).
        """
        body = bytearray()
        while not self._is_complete:
            chunk = await self._body()
            if len(body) + len(chunk) > most_bytes:
                self._stop_timing()
                return None
            body += chunk
        self._watch()
        return body

    async def respond(self, response: Response, *, close: bool, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Write the response, and drop what is still to come of the body.

        Args:
            response: What to write.
            close: Whether the client should use another connection from now on in any case.
            headers: To be added; they win over those of the response.
        """
        fields = fields_of(response.headers, (*headers, *ALWAYS))
        if response.status not in BODILESS:
            fields.append((b"content-length", b"%d" % size_of(response)))
        if (close or response.close) and self._scope["http_version"] != "2":
            fields.append((b"connection", b"close"))
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
            log.warning("a client did not take its response within %s s", self._settings.write_s)
            self._abort()
            return
        if not self._is_complete:
            await self._linger()

    async def _linger(self) -> None:
        """Read and drop the rest of the body: closing now would reset the connection, maybe before the response."""
        settings = self._settings
        # Other streams live on a connection of HTTP/2, so it is not cut as soon.
        limit_s = settings.write_s if self._scope["http_version"] == "2" else settings.linger_s
        try:
            async with asyncio.timeout(limit_s):
                while not self._is_complete:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        return
                    self._is_complete = not message.get("more_body", False)
        except TimeoutError:
            self._abort()
            return
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def uncancel(self) -> None:
        """Take note that the request was cancelled because its client has left (R-154, G-013)."""
        if self._task is not None:
            self._task.uncancel()

    def unwatch(self) -> None:
        """The request is answered, or nobody waits for it: stop watching, and give the memory back."""
        self.share.close()
        self._stop_timing()
        if self._watch_timer is not None:
            self._watch_timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    async def _body(self) -> bytes:
        if self._late_timer is None:
            loop = asyncio.get_running_loop()
            self._late_timer = loop.call_at(self._until_s, self._check_late)
        self._task = task = asyncio.current_task()
        self._is_reading = True
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            if task is None or not self.is_late or task.uncancel():
                raise
            raise DeadlineExceeded(f"only {self._received} bytes of the body came in time") from None
        finally:
            self._is_reading = False
        if message["type"] == "http.disconnect":
            self.is_gone = True
            raise Cancelled("the client left before its request was complete")
        body: bytes = message.get("body", b"")
        self._received += len(body)
        if self._received > self.share.mark:
            self.share.grow(self._received)
        self._is_complete = not message.get("more_body", False)
        return body

    @property
    def _until_s(self) -> float:
        """When the body will be late, on the loop's clock; each byte that came allows more time."""
        settings = self._settings
        return self._started_s + settings.body_s + self._received / settings.body_bytes_per_s

    def _check_late(self) -> None:
        """End a late reading. One timer serves all chunks, so it may ring too early and is then set again."""
        self._late_timer = None
        loop, until_s = asyncio.get_running_loop(), self._until_s
        if until_s > loop.time():
            self._late_timer = loop.call_at(until_s, self._check_late)
        elif self._is_reading and self._task is not None:  # otherwise the next reading sets a timer that rings at once
            self.is_late = True
            self._task.cancel()

    def _stop_timing(self) -> None:
        if self._late_timer is not None:
            self._late_timer.cancel()

    def _watch(self) -> None:
        """Look in a moment whether the client leaves; a request that is answered by then costs no task for that."""
        self._stop_timing()
        self._watch_timer = asyncio.get_running_loop().call_later(_WATCH_S, self._begin_watch)

    def _begin_watch(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._cancel_when_gone(), name="watch")

    async def _cancel_when_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_gone = True
        if self._task is not None:
            self._task.cancel()

    def _abort(self) -> None:
        connection = self._scope.get("state", {}).get("connection")
        if connection is not None:
            connection.abort()


def head_of(scope: Scope) -> RequestHead:
    """The head of a request, or of the handshake of a WebSocket, without its body."""
    headers = [(text_of(name), text_of(value)) for name, value in scope["headers"]]
    method, query = scope.get("method", "GET"), text_of(scope["query_string"])
    return RequestHead(method, _path(scope), query, scope["http_version"], headers)


def _path(scope: Scope) -> str:
    """The path of the request's target, which a client may also give as a whole URI (RFC 9112, 3.2.2)."""
    path: str = scope["path"]
    if path.startswith(("http://", "https://")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path
