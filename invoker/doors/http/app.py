"""The ASGI application behind the HTTP door: it finds who answers each request.

First `Origins` judges who may call. Every path belongs to a `Front`: the part of a service that answers requests of
this door.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from invoker.core.http import Response
from invoker.doors.http.exchange import Exchange, HttpSettings, Receive, Scope, Send, head_of
from invoker.doors.http.heads import target_host
from invoker.doors.http.origins import Origins
from invoker.doors.http.writing import ALWAYS
from invoker.drive.driver import Driver
from invoker.errors import Cancelled

__all__ = ["Application", "Front", "FrontOf", "HttpApp", "refuse_socket"]

log = logging.getLogger(__name__)

Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
FrontOf: TypeAlias = Callable[[str], "Front | None"]


class Front(Protocol):
    """A service on this door."""

    async def answer(self, exchange: Exchange) -> Response:
        """Answer one request.

        Raises:
            Cancelled: The client has left before its request was complete.
            asyncio.CancelledError: The client has left, so the task of the request is cancelled.
        """


class HttpApp:
    """The application.

    Args:
        driver: Its drain ends the connections, and its memory budget counts the bodies.
        settings: Limits in bytes and time.
        front: Gives who answers a path; None: nobody does.
        sockets: Serves WebSocket connections; None: they are refused.

    Attributes:
        is_leaving: Whether responses tell clients of HTTP/1 to use another connection.
        origins: Judges who may call.
    """

    def __init__(
        self,
        driver: Driver,
        settings: HttpSettings,
        front: FrontOf,
        *,
        sockets: Application | None = None,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._front = front
        self._sockets = sockets
        self.is_leaving = False
        self.origins = Origins(settings.origins, settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; ASGI 3."""
        if scope["type"] not in ("http", "websocket"):
            return
        verdict = self.origins.judge(
            head_of(scope),
            host=target_host(scope["raw_path"].decode("latin-1")),
            is_local=scope["server"] is None,
            is_socket=scope["type"] == "websocket",
        )
        if verdict.response is not None and verdict.response.status >= 400:
            told = {"status": verdict.response.status, "detail": verdict.response.body.decode().rstrip()}
            log.info("a request was refused", extra=told)
        if scope["type"] == "websocket":
            await self._shake_hands(scope, receive, send, verdict.response)
            return
        exchange = Exchange(scope, receive, send, self._settings, self._driver.engine.memory)
        response = verdict.response or await self._answer(exchange)
        if response is not None:
            is_closing = self.is_leaving or self._driver.engine.is_draining
            await exchange.respond(response, close=is_closing, headers=verdict.headers)

    async def _shake_hands(self, scope: Scope, receive: Receive, send: Send, refused: Response | None) -> None:
        if refused is not None:
            await receive()  # websocket.connect
            await refuse_socket(send, refused)
        elif self._sockets is not None:
            await self._sockets(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, exchange: Exchange) -> Response | None:
        """The response; None when the client has left and nobody is there to take it."""
        front = self._front(exchange.path)
        if front is None:
            return Response(404, (("Content-Type", "text/plain"),), b"Invoker: Not Found\n")
        try:
            response = await front.answer(exchange)
        except Cancelled:
            return None
        except asyncio.CancelledError:
            if not exchange.is_gone:
                raise
            exchange.uncancel()
            return None
        finally:
            exchange.unwatch()
        return None if exchange.is_gone else response


async def refuse_socket(send: Send, response: Response) -> None:
    """Answer the handshake of a WebSocket by a status of HTTP."""
    headers = [(name.lower().encode(), value.encode()) for name, value in (*response.headers, *ALWAYS)]
    headers += [(b"content-length", b"%d" % len(response.body)), (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})
