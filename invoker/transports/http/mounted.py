"""`MountedTransport`: the HTTP transport without sockets: another program's ASGI server brings the requests.

That program may have any host name and be behind any proxy, so the transport cannot know its own names. It checks
`Host` only if the allowed names are set; the rules about foreign web pages apply as always (ADR 0045). Paths count from
where the transport is mounted. Keys that servers may leave out of a scope are added here; keys that the server has set
are not changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Final

from invoker.core.http import Response
from invoker.execution.driver import Driver
from invoker.transports.http import asgisocket
from invoker.transports.http.app import HandlerOf, HttpApp, SocketOf
from invoker.transports.http.asgi import AsgiApp, Receive, Scope, Send, head_of
from invoker.transports.http.exchange import HttpSettings

_LEFT: Final = Response(499, (), b"")
"""The status that nginx logs for a client that has closed its request."""


class MountedTransport:
    """Serves services over HTTP, in the event loop of the host program.

    Args:
        driver: Runs the conversations.
        handler: Gives the handler of a path; None: there is none.
        settings: Limits in bytes and time.
        sockets: Gives the handler that serves the WebSockets of a path; None: there is none.
    """

    def __init__(
        self, driver: Driver, handler: HandlerOf, *, settings: HttpSettings, sockets: SocketOf = lambda _: None
    ) -> None:
        self.app = HttpApp(driver, settings, handler, sockets)
        self.app.origins.mount()
        self._asgi = AsgiApp(self.app)
        self._requests = 0
        self._quiet = asyncio.Event()

    def start(self) -> None:
        """Begin to answer, on the running loop."""
        self.app.driver.loop = asyncio.get_running_loop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one WebSocket; ASGI 3."""
        inner = inner_scope(scope)
        self._requests += 1
        try:
            if scope["type"] == "http":
                await self._answer(inner, receive, send)
            else:
                await asgisocket.serve_socket(self.app, head_of(inner), inner, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self._quiet.set()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        A client that has left is answered as well, since middleware of the host may need a response.
        """
        has_begun = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        await self._asgi(scope, receive, sending)
        if not has_begun:
            with suppress(OSError):  # some servers raise this when the client has left
                await refuse(scope, receive, send, _LEFT)

    def leave(self) -> None:
        """Ask clients of HTTP/1 to reconnect; requests are served as before."""
        self.app.is_leaving = True

    async def stop(self, grace_s: float) -> None:
        """End the WebSockets; wait for requests, whose tasks belong to the host, no longer than ``grace_s``.

        Idempotent.
        """
        await self.app.connections.end(grace_s, grace_s)
        while self._requests:
            self._quiet.clear()
            try:
                async with asyncio.timeout(grace_s):
                    await self._quiet.wait()
            except TimeoutError:
                return


def inner_scope(scope: Scope) -> dict[str, Any]:
    """The scope of a request, as this transport reads it: with the path below the mount."""
    path, root = scope["path"], scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):  # some hosts have removed the mount path already
        path = path[len(root) :]
    return {
        **scope,
        "path": path or "/",
        "raw_path": scope.get("raw_path") or b"",
        "query_string": scope.get("query_string") or b"",
        "http_version": scope.get("http_version") or "1.1",
    }


async def refuse(scope: Scope, receive: Receive, send: Send, response: Response) -> None:
    """Refuse a request or a handshake, before there is a transport."""
    if scope["type"] == "websocket":
        await asgisocket.refuse(scope, receive, send, response)
        return
    headers = [(name.lower().encode(), value.encode()) for name, value in response.headers]
    headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
