"""ASGI: how hypercorn hands us requests of HTTP/2."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from invoker.core.http import RequestHead, Response
from invoker.doors.http.app import FAULT, Front, HttpApp, PromptFront
from invoker.doors.http.asgiexchange import AsgiExchange, Receive, Scope, Send
from invoker.doors.http.heads import target_host, text_of

__all__ = ["Application", "AsgiApp", "Receive", "Scope", "Send", "head_of"]

log = logging.getLogger(__name__)

Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class AsgiApp:
    """The application.

    Args:
        app: What it shares with HTTP/1.1.
    """

    def __init__(self, app: HttpApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; ASGI 3."""
        if scope["type"] != "http":
            return
        head = head_of(scope)
        verdict = self._app.judge(
            head,
            host=target_host(scope["raw_path"].decode("latin-1")),
            is_local=scope["server"] is None,
        )
        app = self._app
        front = app.front(head.path)
        coded = app.coded(head, front, verdict)
        head, refused = coded.head, coded.verdict.response
        exchange = AsgiExchange(head, scope, receive, send, app.settings, app.driver.engine.memory, coded.packed)
        exchange.headers, exchange.choice = coded.verdict.headers, coded.choice
        response = app.judged(refused, head) if refused is not None else await self._answer(exchange, front)
        if response is not None:
            await exchange.respond(response)
        else:
            await exchange.carried()

    async def _answer(self, exchange: AsgiExchange, front: Front | None) -> Response | None:
        """The response; None if it is written already, or nobody is there to take it."""
        if front is None:
            return self._app.not_found(exchange.head)
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
            return FAULT


def head_of(scope: Scope) -> RequestHead:
    """The head of a request or of a handshake; a target may be a whole URI (RFC 9112, 3.2.2)."""
    path: str = scope["path"]
    if path.startswith(("http://", "https://")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    headers = [(text_of(name), text_of(value)) for name, value in scope["headers"]]
    method, query = scope.get("method", "GET"), text_of(scope["query_string"])
    return RequestHead(method, path, query, scope["http_version"], headers)
