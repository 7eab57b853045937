"""The ASGI application behind the HTTP door: one request, one conversation, one response.

What the process itself answers (`/healthz`, `/livez`, `/readyz`, `/metrics`) never reaches a session. Everything else
does; the application only reads the body, watches for a client that leaves, and writes the session's response.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from invoker.drive.driver import Driver
from invoker.drive.pump import pump
from invoker.errors import Cancelled, DeadlineExceeded, InternalError, Status, StatusError
from invoker.protocols.riff.http import BodyChunk, Frame, HttpSession, RequestHead, Response, Signature

__all__ = ["Application", "HttpApp", "HttpSettings", "IsReady", "Metrics", "Receive", "Scope", "Send"]

log = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
IsReady: TypeAlias = Callable[[], Awaitable[bool]]
Metrics: TypeAlias = Callable[[], tuple[str, bytes]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_READY_S = 5.0
_BODILESS = frozenset({204, 304})  # these must not say a length (RFC 9110, 8.6)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How requests are treated.

    Attributes:
        max_body_bytes: A longer body is refused with 413.
        timeout_s: From the head to the response, else 504; None means no limit.
        idle_s: A connection without a request under way ends after so long; a head must come within it, too.
        body_s: A body may take this long, and longer by what it has brought at ``body_bytes_per_s``, else 408.
        body_bytes_per_s: The slowest upload that is borne with.
        write_s: A client that does not take its response for so long loses its connection.
        linger_s: How long the rest of a refused body is read and dropped, so that its sender gets to see the refusal.
    """

    max_body_bytes: int = 4 * 1024 * 1024
    timeout_s: float | None = None
    idle_s: float = 30.0
    body_s: float = 30.0
    body_bytes_per_s: float = 1024.0
    write_s: float = 60.0
    linger_s: float = 5.0


class HttpApp:
    """The application.

    Args:
        driver: Runs the conversations.
        settings: Limits in bytes and time.
        is_ready: Whether this process should get traffic.
        metrics: Gives the media type and body of ``/metrics``; None: there is no such path.
        sockets: Serves WebSocket connections; None: they are refused.

    Attributes:
        is_leaving: Whether clients of HTTP/1 are told to connect anew.
    """

    def __init__(
        self,
        driver: Driver,
        settings: HttpSettings,
        *,
        is_ready: IsReady | None = None,
        metrics: Metrics | None = None,
        sockets: Application | None = None,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._is_ready = is_ready
        self._metrics = metrics
        self._sockets = sockets
        self._signatures = _signatures(driver)
        self.is_leaving = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; ASGI 3."""
        if scope["type"] != "http":
            if scope["type"] == "websocket" and self._sockets is not None:
                await self._sockets(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close"})
            return
        exchange = _Exchange(scope, receive, send, self._settings)
        response = await self._own(scope["method"], exchange.path)
        if response is None:
            response = await self._converse(exchange)
        if response is not None:
            await exchange.respond(response, close=self.is_leaving or self._driver.engine.is_draining)

    async def _own(self, method: str, path: str) -> Response | None:
        """What the process answers itself, without touching the function (R-156)."""
        if path not in ("/healthz", "/livez", "/readyz") and (path != "/metrics" or self._metrics is None):
            return None
        if method not in ("GET", "HEAD"):
            return Response(405, (("Content-Type", "text/plain"), ("Allow", "GET, HEAD")), b"GET reads this\n")
        if path == "/metrics":
            assert self._metrics is not None
            media_type, body = self._metrics()
            return Response(200, (("Content-Type", media_type), ("Cache-Control", "no-store")), body)
        is_well = path != "/readyz" or await self._ready()
        status, text = (200, b"ok\n") if is_well else (503, b"not ready\n")
        return Response(status, (("Content-Type", "text/plain"), ("Cache-Control", "no-store")), text)

    async def _ready(self) -> bool:
        if self._is_ready is None:
            return not self._driver.engine.is_draining
        try:
            async with asyncio.timeout(_READY_S):
                return await self._is_ready()
        except TimeoutError:
            log.warning("the ready check took longer than %s s", _READY_S)
            return False

    async def _converse(self, exchange: _Exchange) -> Response | None:
        """Run one invocation; None when nobody is left to be answered."""
        settings = self._settings
        session = HttpSession(self._signature, max_body_bytes=settings.max_body_bytes)
        deadline = None if settings.timeout_s is None else time.monotonic() + settings.timeout_s
        conversation = exchange.conversation = asyncio.current_task()
        try:
            error = await pump(session, exchange, self._driver, deadline=deadline)
        except asyncio.CancelledError:
            if not exchange.is_gone or conversation is None:
                raise
            # `_Exchange._watch` cancelled us, because the client has left, and the invocation with it.
            conversation.uncancel()
            return None
        except Exception:  # a session or driver of ours is at fault; nothing of it may reach the peer
            log.exception("a request failed inside the invoker")
            error = InternalError()
        finally:
            exchange.unwatch()
        if exchange.is_gone:
            return None
        if exchange.response is not None:
            return exchange.response
        return session.refusal(error or InternalError(), status=408 if exchange.is_late else 0)

    def _signature(self, name: str) -> Signature:
        known = self._signatures
        if not name and len(known) == 1:
            return next(iter(known.values()))
        if name in known:
            return known[name]
        if name:
            text = f"Invoker: Not Found: no function is named {name!a}; this invoker serves {', '.join(known)}"
            raise StatusError(Status.NOT_FOUND, text)
        text = f"Invoker: Bad Request: this invoker serves {', '.join(known)}; name one in the header Invoker-Function"
        raise StatusError(Status.INVALID_ARGUMENT, text)


class _Exchange:
    """One ASGI request as a channel: frames in, one response out."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, settings: HttpSettings) -> None:
        self.path = _path(scope)
        self.response: Response | None = None
        self.is_gone = False
        self.is_late = False
        self.conversation: asyncio.Task[Any] | None = None
        self._scope = scope
        self._receive = receive
        self._send = send
        self._settings = settings
        self._is_headed = False
        self._is_complete = False
        self._received = 0
        self._started_s = 0.0
        self._watcher: asyncio.Task[None] | None = None

    async def read(self) -> Frame | None:
        """The head, then the body's chunks, then None.

        Raises:
            Cancelled: The client has left.
            DeadlineExceeded: The body comes too slowly (408).
        """
        if not self._is_headed:
            self._is_headed = True
            self._started_s = asyncio.get_running_loop().time()
            return _head(self._scope, self.path)
        while not self._is_complete:
            body = await self._body()
            if body:
                return BodyChunk(body)
        self._watch()
        return None

    async def accepted(self) -> None:
        """Nothing can be told before the function has ended: its output decides the status."""

    async def write(self, frame: Response) -> None:
        """Keep the response; it is written when the conversation is over, so that a slow client holds no invocation."""
        self.response = frame

    async def respond(self, response: Response, *, close: bool) -> None:
        """Write the response, and drop what is still to come of the body.

        Args:
            response: What to write.
            close: Whether the client should use another connection from now on.
        """
        headers = [(name.lower().encode(), value.encode()) for name, value in response.headers]
        if response.status not in _BODILESS:
            headers.append((b"content-length", b"%d" % len(response.body)))
        if close and self._scope["http_version"] != "2":
            headers.append((b"connection", b"close"))
        try:
            async with asyncio.timeout(self._settings.write_s):
                await self._send({"type": "http.response.start", "status": response.status, "headers": headers})
                await self._send(
                    {"type": "http.response.body", "body": response.body, "more_body": not self._is_complete}
                )
        except TimeoutError:
            log.warning("a client did not take its response within %s s", self._settings.write_s)
            self._abort()
            return
        if not self._is_complete:
            await self._linger()

    async def _linger(self) -> None:
        """Closing now would reset the connection, and the reset could overtake the response."""
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

    def unwatch(self) -> None:
        """The conversation is over."""
        if self._watcher is not None:
            self._watcher.cancel()

    async def _body(self) -> bytes:
        settings = self._settings
        until = self._started_s + settings.body_s + self._received / settings.body_bytes_per_s
        try:
            async with asyncio.timeout_at(until):
                message = await self._receive()
        except TimeoutError:
            self.is_late = True
            raise DeadlineExceeded(f"only {self._received} bytes of the body came in time") from None
        if message["type"] == "http.disconnect":
            self.is_gone = True
            raise Cancelled("the client left before its request was complete")
        body: bytes = message.get("body", b"")
        self._received += len(body)
        self._is_complete = not message.get("more_body", False)
        return body

    def _watch(self) -> None:
        """From now on the client can only leave."""
        self._watcher = asyncio.get_running_loop().create_task(self._cancel_when_gone(), name="watch")

    async def _cancel_when_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_gone = True
        if self.conversation is not None:
            self.conversation.cancel()

    def _abort(self) -> None:
        connection = self._scope.get("state", {}).get("connection")
        if connection is not None:
            connection.abort()


def _signatures(driver: Driver) -> Mapping[str, Signature]:
    specs = (function.spec for function in driver.engine.catalog)
    return {spec.name: Signature(tuple(one.name for one in spec.inputs), spec.open_inputs) for spec in specs}


def _path(scope: Scope) -> str:
    """The path of the request's target, which a client may also give as a whole URI (RFC 9112, 3.2.2)."""
    path: str = scope["path"]
    if path.startswith(("http://", "https://")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path


def _head(scope: Scope, path: str) -> RequestHead:
    headers = [(_text(name), _text(value)) for name, value in scope["headers"]]
    return RequestHead(scope["method"], path, _text(scope["query_string"]), scope["http_version"], headers)


def _text(data: bytes) -> str:
    """Header bytes as text: UTF-8, which is what our own responses use, else Latin-1, which takes everything."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
