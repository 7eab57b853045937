"""The ASGI application behind the HTTP door: one request, one conversation, one response.

What the process itself answers (`/healthz`, `/livez`, `/readyz`, `/metrics`) never reaches a session. Everything else
does; the application only reads the body, watches for a client that leaves, and writes the session's response. Before
any of them, `Origins` judges who may call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

from invoker.doors.http.exchange import ALWAYS, Exchange, HttpSettings, Receive, Reply, Scope, Send
from invoker.doors.http.origins import Origins
from invoker.drive.driver import Driver
from invoker.drive.pump import pump
from invoker.errors import InternalError, Status, StatusError
from invoker.protocols.riff.fields import Signature, signature_of
from invoker.protocols.riff.http import HttpSession, Response

__all__ = [
    "Application",
    "Exchange",
    "Front",
    "FrontOf",
    "HttpApp",
    "HttpSettings",
    "IsReady",
    "Metrics",
    "Receive",
    "Reply",
    "Scope",
    "Send",
    "refuse_socket",
]

log = logging.getLogger(__name__)

IsReady: TypeAlias = Callable[[], Awaitable[bool]]
Metrics: TypeAlias = Callable[[], tuple[str, bytes]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
FrontOf: TypeAlias = Callable[[str], "Front | None"]

_READY_S = 5.0


class Front(Protocol):
    """Another protocol on this door, that has paths of its own."""

    async def answer(self, exchange: Exchange) -> Reply | None:
        """Answer one request; None when nobody is left to be answered."""


class HttpApp:
    """The application.

    Args:
        driver: Runs the conversations.
        settings: Limits in bytes and time.
        is_ready: Whether this process should get traffic.
        metrics: Gives the media type and body of ``/metrics``; None: there is no such path.
        sockets: Serves WebSocket connections; None: they are refused.
        front: Gives who answers a path that is neither the process's nor a function's; None: nobody does.

    Attributes:
        is_leaving: Whether clients of HTTP/1 are told to connect anew.
        origins: Judges who may call.
    """

    def __init__(
        self,
        driver: Driver,
        settings: HttpSettings,
        *,
        is_ready: IsReady | None = None,
        metrics: Metrics | None = None,
        sockets: Application | None = None,
        front: FrontOf | None = None,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._front = front
        self._is_ready = is_ready
        self._metrics = metrics
        self._sockets = sockets
        self._signatures = _signatures(driver)
        self.is_leaving = False
        self.origins = Origins(settings.origins, settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; ASGI 3."""
        if scope["type"] not in ("http", "websocket"):
            return
        verdict = self.origins.judge(scope)
        if verdict.response is not None and verdict.response.status >= 400:
            told = {"status": verdict.response.status, "detail": verdict.response.body.decode().rstrip()}
            log.info("a request was refused", extra=told)
        if scope["type"] == "websocket":
            await self._shake_hands(scope, receive, send, verdict.response)
            return
        exchange = Exchange(scope, receive, send, self._settings, self._driver.engine.memory)
        reply = await self._answer(scope, exchange) if verdict.response is None else Reply(verdict.response)
        if reply is not None:
            is_closing = self.is_leaving or self._driver.engine.is_draining
            await exchange.respond(reply, close=is_closing, headers=verdict.headers)

    async def _shake_hands(self, scope: Scope, receive: Receive, send: Send, refused: Response | None) -> None:
        if refused is not None:
            await receive()  # websocket.connect
            await refuse_socket(send, refused)
        elif self._sockets is not None:
            await self._sockets(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, scope: Scope, exchange: Exchange) -> Reply | None:
        response = await self._own(scope["method"], exchange.path)
        if response is not None:
            return Reply(response)
        front = self._front(exchange.path) if self._front is not None else None
        return await (front.answer(exchange) if front is not None else self._converse(exchange))

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

    async def _converse(self, exchange: Exchange) -> Reply | None:
        """Run one invocation; None when nobody is left to be answered."""
        settings = self._settings
        session = HttpSession(self._signature, max_body_bytes=settings.max_body_bytes)
        deadline = None if settings.timeout_s is None else time.monotonic() + settings.timeout_s
        conversation = exchange.conversation = asyncio.current_task()
        try:
            error = await pump(session, exchange, self._driver, deadline=deadline, is_counted=False)
        except asyncio.CancelledError:
            if not exchange.is_gone or conversation is None:
                raise
            # `Exchange` cancelled us, because the client has left, and the invocation with it.
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
            return Reply(exchange.response)
        return Reply(session.refusal(error or InternalError(), status=408 if exchange.is_late else 0))

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


async def refuse_socket(send: Send, response: Response) -> None:
    """Answer the handshake of a WebSocket by a status of HTTP."""
    headers = [(name.lower().encode(), value.encode()) for name, value in (*response.headers, *ALWAYS)]
    headers += [(b"content-length", b"%d" % len(response.body)), (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


def _signatures(driver: Driver) -> Mapping[str, Signature]:
    engine = driver.engine
    return {one.spec.name: signature_of(one.spec, engine.registry_for(one)) for one in engine.catalog}
