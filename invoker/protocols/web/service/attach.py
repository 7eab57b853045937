"""`RiffHttpService`: attaches the HTTP API to the HTTP transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invoker.attach.service import Service

if TYPE_CHECKING:
    from invoker.protocols.web.service.sockets import Sockets
    from invoker.settings import Config
    from invoker.transports.http.app import Handler, SocketHandler


class RiffHttpService(Service):
    """Serves riff over HTTP: a request is an invocation. It answers every path that no other service claims."""

    name = "http"
    on_http = True
    _handler: Handler | None = None
    _no_socket: Handler | None = None
    _sockets: Sockets | None = None

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:  # noqa: ARG003 - as `Service`
        """Whether the service was chosen, and HTTP is served."""
        return is_chosen and has_http

    async def start(self) -> None:
        """Read the functions' signatures, so that the first request need not wait for that."""
        from invoker.protocols.web.service.http import RiffHandler
        from invoker.protocols.web.service.sockets import NoSocketHandler, Sockets
        from invoker.transports.http.app import SocketSettings

        config = self.around.config
        most_bytes = min(config.max_message_bytes, self.around.driver.engine.limits.hard_bytes)
        self._sockets, self._no_socket = Sockets(self.around.driver, SocketSettings(most_bytes)), NoSocketHandler()
        self._handler = RiffHandler(
            self.around.driver,
            max_body_bytes=config.max_message_bytes,
            timeout_s=config.http_timeout_s or None,
            settle_s=config.settle_s,
            ignores_unknown=config.http_ignore_unknown,
        )

    def http_handler(self, path: str) -> Handler | None:
        """The handler of a path; at the path of a WebSocket, a handler that refuses plain HTTP requests."""
        return self._no_socket if self.socket_handler(path) is not None else self._handler

    def socket_handler(self, path: str) -> SocketHandler | None:
        """The handler of WebSockets at this path; None if no function has this path."""
        return None if self._sockets is None else self._sockets.handler(path)
