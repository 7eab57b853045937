"""ASGI: how hypercorn hands us requests of HTTP/2, and connections of WebSocket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from invoker.core.http import RequestHead, Response
from invoker.doors.http.app import NOT_FOUND, HttpApp, PromptFront
from invoker.doors.http.asgiexchange import AsgiExchange, Receive, Scope, Send
from invoker.doors.http.heads import target_host, text_of
from invoker.doors.http.writing import ALWAYS

__all__ = ["Application", "AsgiApp", "Receive", "Scope", "Send", "refuse_socket"]

log = logging.getLogger(__name__)

Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_FAULT = Response(500, (), b"", close=True)


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
        exchange.headers = verdict.headers
        response = judged or await self._answer(exchange)
        if response is not None:
            await exchange.respond(response)
        else:
            await exchange.carried()

    async def _shake_hands(self, scope: Scope, receive: Receive, send: Send, refused: Response | None) -> None:
        if refused is not None:
            await receive()  # websocket.connect
            await refuse_socket(send, refused)
        elif self._sockets is not None:
            await self._sockets(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, exchange: AsgiExchange) -> Response | None:
        """The response; None if it is written already, or nobody is there to take it."""
        front = self._app.front(exchange.path)
        if front is None:
            return NOT_FOUND
        begin = front.prompt(exchange.head) if isinstance(front, PromptFront) else None
        try:
            if begin is not None:
                return await exchange.run(begin)
            return await self._app.answer(exchange, front)
        except asyncio.CancelledError:
            if not exchange.is_gone:
                raise
            exchange.uncancel()
            return None
        except Exception:  # a front is at fault, and nothing of it may reach the peer
            log.exception("a request failed")
            return _FAULT


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
