"""`AsgiApp`: the ASGI application by which the host's server reaches a mounted transport."""

from __future__ import annotations

import asyncio
import logging

from invoker.core.http import RequestHead, Response
from invoker.transports.http.app import FAULT, HttpApp
from invoker.transports.http.asgiexchange import AsgiExchange, Receive, Scope, Send
from invoker.transports.http.cachedhead import CachedHead, SharedHeads
from invoker.transports.http.heads import Head, target_host, text_of

__all__ = ["AsgiApp", "Receive", "Scope", "Send", "head_of"]

log = logging.getLogger(__name__)


class AsgiApp:
    """The ASGI application of a mounted transport.

    Args:
        app: Decides whether requests are allowed and finds their handlers, as for HTTP/1.1.
    """

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self._heads = SharedHeads(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI 3 calls an application; other scopes than HTTP are ignored."""
        if scope["type"] != "http":
            return
        app, known = self._app, self._meaning(scope)
        head, refused = known.head.request, known.verdict.response
        exchange = AsgiExchange(head, scope, receive, send, app.settings, app.driver.engine.memory, known.packed)
        exchange.headers, exchange.choice = known.verdict.headers, known.choice
        response = app.judged(refused, head) if refused is not None else await self._answer(exchange, known)
        if response is not None:
            await exchange.respond(response)
        else:
            await exchange.carried()

    def _meaning(self, scope: Scope) -> CachedHead:
        host = target_host(scope["raw_path"].decode("latin-1"))
        about = (scope["method"], scope["path"], scope["query_string"], scope["http_version"], host)
        sent = (*about, *[(name, value) for name, value in scope["headers"]])
        return self._heads.get(sent, lambda _: Head(head_of(scope), host, None, True, False, False))

    async def _answer(self, exchange: AsgiExchange, known: CachedHead) -> Response | None:
        """The response; None if it is already written, or the client has left."""
        if known.handler is None:
            return self._app.not_found(exchange.head)
        try:
            if known.begin is not None:
                if (full := self._app.full(exchange.head)) is not None:
                    return full
                return await exchange.run(known.begin)
            return await self._app.answer(exchange, known.handler)
        except asyncio.CancelledError:
            if known.begin is not None or not exchange.is_gone:
                raise  # only the end of the connection cancels a request that has no task of its own
            exchange.uncancel()
            return None
        except Exception:  # a bug in a handler; the peer must not see its text
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
