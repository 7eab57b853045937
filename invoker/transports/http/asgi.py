"""ASGI: how hypercorn hands us requests of HTTP/2."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from invoker.core.http import RequestHead, Response
from invoker.transports.http.app import FAULT, Begin, Coded, Handler, HttpApp, prompt_of
from invoker.transports.http.asgiexchange import AsgiExchange, Receive, Scope, Send
from invoker.transports.http.heads import target_host, text_of

__all__ = ["Application", "AsgiApp", "Receive", "Scope", "Send", "head_of"]

log = logging.getLogger(__name__)

Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_MOST_KNOWN: Final = 64


class AsgiApp:
    """The application.

    It keeps what heads mean, because many requests have the same one; to find that out takes half of a short request.

    Args:
        app: Judges requests and finds their handlers, as for HTTP/1.1.
    """

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self._known: dict[tuple[object, ...], _Known] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI 3 calls an application; other scopes than HTTP are ignored."""
        if scope["type"] != "http":
            return
        app, known = self._app, self._meaning(scope)
        verdict, head, packed, choice, _ = known.coded
        exchange = AsgiExchange(head, scope, receive, send, app.settings, app.driver.engine.memory, packed)
        exchange.headers, exchange.choice = verdict.headers, choice
        refused = verdict.response
        response = app.judged(refused, head) if refused is not None else await self._answer(exchange, known)
        if response is not None:
            await exchange.respond(response)
        else:
            await exchange.carried()

    def _meaning(self, scope: Scope) -> _Known:
        """What the head of a request means; the same head means the same again, unless it is traced."""
        host = target_host(scope["raw_path"].decode("latin-1"))
        is_local = scope["server"] is None
        about = (scope["method"], scope["path"], scope["query_string"], scope["http_version"], host, is_local)
        key = (*about, *[(name, value) for name, value in scope["headers"]])
        known = self._known.get(key)
        if known is None:
            known = _Known.of(self._app, head_of(scope), host=host, is_local=is_local)
            if not known.coded.is_traced:
                if len(self._known) >= _MOST_KNOWN:  # clients choose them, so a full one is emptied
                    self._known.clear()
                self._known[key] = known
        return known

    async def _answer(self, exchange: AsgiExchange, known: _Known) -> Response | None:
        """The response; None if it is written already, or nobody is there to take it."""
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
        except Exception:  # a handler is at fault, and nothing of it may reach the peer
            log.exception("a request failed")
            return FAULT


class _Known(NamedTuple):
    """What a head means to this transport.

    Attributes:
        coded: Whether it may call, and how bodies are packed.
        handler: The handler of the path; None: there is none.
        begin: How the handler begins without a task; None: it needs one.
    """

    coded: Coded
    handler: Handler | None
    begin: Begin | None

    @classmethod
    def of(cls, app: HttpApp, head: RequestHead, *, host: str, is_local: bool) -> _Known:
        """Judge the head, and find its handler and its coding."""
        handler = app.handler(head.path)
        coded = app.coded(head, handler, app.judge(head, host=host, is_local=is_local))
        is_let_in = coded.verdict.response is None
        begin = prompt_of(handler, coded.head) if is_let_in else None
        return cls(coded, handler, begin)


def head_of(scope: Scope) -> RequestHead:
    """The head of a request or of a handshake; a target may be a whole URI (RFC 9112, 3.2.2)."""
    path: str = scope["path"]
    if path.startswith(("http://", "https://")):
        path = "/" + path.partition("://")[2].partition("/")[2]
    headers = [(text_of(name), text_of(value)) for name, value in scope["headers"]]
    method, query = scope.get("method", "GET"), text_of(scope["query_string"])
    return RequestHead(method, path, query, scope["http_version"], headers)
