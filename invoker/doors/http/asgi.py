"""ASGI: how hypercorn hands us requests of HTTP/2, and connections of WebSocket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias

from invoker.core.budget import ProcessBudget
from invoker.core.http import RequestHead, Response
from invoker.doors.http.app import NOT_FOUND, HttpApp
from invoker.doors.http.exchange import Exchange, HttpSettings
from invoker.doors.http.heads import target_host, text_of
from invoker.doors.http.writing import ALWAYS, BODILESS, PIECE_BYTES, fields_of, parts_of, size_of

__all__ = ["Application", "AsgiApp", "AsgiExchange", "Receive", "Scope", "Send", "refuse_socket"]

log = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_WATCH_S = 0.1
"""Only requests that take longer are watched for clients that leave: a task for each shorter one would cost more."""


class AsgiApp:
    """The application.

    Args:
        app: What it shares with HTTP/1.1.
        sockets: Serves WebSocket connections; None: they are refused.
    """

    def __init__(self, app: HttpApp, sockets: Application | None = None) -> None:
        self._app = app
        self._sockets = sockets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; ASGI 3."""
        if scope["type"] not in ("http", "websocket"):
            return
        head = _head(scope)
        verdict = self._app.judge(
            head,
            host=target_host(scope["raw_path"].decode("latin-1")),
            is_local=scope["server"] is None,
            is_socket=scope["type"] == "websocket",
        )
        app = self._app
        judged = None if verdict.response is None else app.judged(verdict.response)
        if scope["type"] == "websocket":
            await self._shake_hands(scope, receive, send, judged)
            return
        exchange = AsgiExchange(head, scope, receive, send, app.settings, app.driver.engine.memory)
        response = judged or await self._answer(exchange)
        if response is not None:
            await exchange.respond(response, headers=verdict.headers)

    async def _shake_hands(self, scope: Scope, receive: Receive, send: Send, refused: Response | None) -> None:
        if refused is not None:
            await receive()  # websocket.connect
            await refuse_socket(send, refused)
        elif self._sockets is not None:
            await self._sockets(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, exchange: AsgiExchange) -> Response | None:
        front = self._app.front(exchange.path)
        if front is None:
            return NOT_FOUND
        try:
            return await self._app.answer(exchange, front)
        except asyncio.CancelledError:
            if not exchange.is_gone:
                raise
            exchange.uncancel()
            return None


class AsgiExchange(Exchange):
    """One ASGI request, and the response to it.

    Args:
        head: Everything but the body.
        scope: Of the request.
        receive: Of the request.
        send: Of the request.
        settings: Limits.
        memory: Counts the body; None: nobody does.
    """

    def __init__(
        self,
        head: RequestHead,
        scope: Scope,
        receive: Receive,
        send: Send,
        settings: HttpSettings,
        memory: ProcessBudget | None = None,
    ) -> None:
        super().__init__(head, settings, memory)
        self._scope = scope
        self._receive = receive
        self._send = send
        self._watch_timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def respond(self, response: Response, *, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Write the response, and drop what is still to come of the body.

        Args:
            response: What to write.
            headers: To be added; they win over those of the response.
        """
        fields = fields_of(response.headers, (*headers, *ALWAYS))
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
            log.warning("a client did not take its response within %s s", self._settings.write_s)
            self._abort()
            return
        if not self._is_complete:
            await self._linger()

    async def _linger(self) -> None:
        """Read and drop the rest of the body, for as long as a client has to take its response: others run beside."""
        try:
            async with asyncio.timeout(self._settings.write_s):
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

    def close(self) -> None:
        """The request is answered, or nobody waits for it: stop watching, and give the memory back."""
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
        """Look in a moment whether the client leaves; a request that is answered by then costs no task for that."""
        super()._completed()
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


async def refuse_socket(send: Send, response: Response) -> None:
    """Answer the handshake of a WebSocket by a status of HTTP."""
    headers = [(name.lower().encode(), value.encode()) for name, value in (*response.headers, *ALWAYS)]
    headers += [(b"content-length", b"%d" % len(response.body)), (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


def _head(scope: Scope) -> RequestHead:
    """The head of a request, or of a handshake; a target may be a whole URI (RFC 9112, 3.2.2)."""
    path: str = scope["path"]
    if path.startswith(("http://", "https://")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    headers = [(text_of(name), text_of(value)) for name, value in scope["headers"]]
    method, query = scope.get("method", "GET"), text_of(scope["query_string"])
    return RequestHead(method, path, query, scope["http_version"], headers)
