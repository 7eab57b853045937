"""WebSocket sessions behind the HTTP door: how many may connect, and where.

The ASGI server speaks WebSocket: handshake, frames, compression, pongs. `SocketLine` serves a connection that was let
in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from invoker.core.http import Response
from invoker.doors.http.asgi import Receive, Scope, Send, refuse_socket
from invoker.doors.http.socketline import SocketLine, SocketSession, SocketSettings
from invoker.drive.driver import Driver

__all__ = ["SocketApp"]

log = logging.getLogger(__name__)


class SocketApp:
    """The application for WebSocket connections.

    Args:
        driver: Runs the sessions.
        begin: Makes the session of a connection, from the headers of its handshake.
        settings: Who may connect, and limits.

    Attributes:
        running: Sessions right now.
    """

    def __init__(
        self, driver: Driver, begin: Callable[[Mapping[str, str]], SocketSession], settings: SocketSettings
    ) -> None:
        self.running = 0
        self._driver = driver
        self._begin = begin
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; ASGI 3."""
        await receive()  # websocket.connect
        headers = _headers(scope)
        status, why = self._refusal(scope)
        if status:
            log.info("a connection was refused", extra={"status": status, "detail": why})
            await refuse_socket(send, Response(status, (("Content-Type", "text/plain"),), f"{why}\n".encode()))
            return
        self.running += 1
        try:
            session = self._begin(_metadata(headers))
            await SocketLine(self._driver, session, self._settings, scope, receive, send).serve()
        finally:
            self.running -= 1

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        """The status of HTTP that refuses a handshake, and why; 0 lets it pass."""
        settings = self._settings
        if scope["path"] != settings.path:
            return 404, f"sessions are served on {settings.path}"
        if self._driver.engine.is_draining:
            return 503, "this invoker is draining and takes no new sessions"
        if self.running >= settings.sessions:
            return 503, f"{self.running} sessions are running, and no more are allowed at once"
        return 0, ""


def _headers(scope: Scope) -> dict[str, str]:
    """Of the handshake, by lower-case names; the values of one that came several times are joined by commas."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of the handshake that functions see."""
    return {
        name: value
        for name, value in headers.items()
        if name not in ("connection", "upgrade", "host") and not name.startswith("sec-websocket-")
    }
