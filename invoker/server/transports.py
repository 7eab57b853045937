"""`Transports`: the transports of a server and their addresses; `MountedTransports`: without sockets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from invoker.attach.service import Service
from invoker.errors import ConfigError
from invoker.execution.driver import Driver
from invoker.server.handlers import Handlers
from invoker.settings import Config
from invoker.transports.grpc.settings import GrpcSettings
from invoker.transports.tls import TlsFiles

if TYPE_CHECKING:
    from invoker.transports.grpc.aio import AioTransport
    from invoker.transports.grpc.fast import FastTransport
    from invoker.transports.grpc.methods import Method
    from invoker.transports.http.app import SocketHandler
    from invoker.transports.http.exchange import HttpSettings
    from invoker.transports.http.mounted import MountedTransport
    from invoker.transports.http.transport import HttpTransport

log = logging.getLogger(__name__)


class Transports:
    """The transports of one server.

    Args:
        config: Every setting.
        driver: Runs the conversations.
        has_grpc: Whether any service needs the gRPC transport.
        has_http: Whether any service needs the HTTP transport.

    Attributes:
        grpc_address: ``host:port`` once open; empty when nothing is served on it.
        http_address: ``host:port`` once open; empty without the HTTP transport.
    """

    def __init__(self, config: Config, driver: Driver, *, has_grpc: bool, has_http: bool) -> None:
        self.has_grpc = has_grpc
        self.has_http = has_http
        self.grpc_address = ""
        self.http_address = ""
        self._config = config
        self._driver = driver
        self._services: Sequence[Service] = ()
        self._share_ports = False
        self._handlers = Handlers(())
        self._fast: bool | None = None
        self._grpc: AioTransport | FastTransport | None = None
        self._http: HttpTransport | None = None

    @property
    def lends(self) -> bool:
        """Whether the methods of the gRPC transport that run on the loop need a `QueuePollingLoop`."""
        return self.has_grpc and self._is_fast()

    @property
    def ports(self) -> set[int]:
        """The TCP ports of the open transports."""
        return {int(one.rpartition(":")[2]) for one in (self.grpc_address, self.http_address) if one}

    def serve(self, services: Sequence[Service], *, share_ports: bool) -> None:
        """Set the services, before any transport opens.

        Args:
            services: The services; for the handler of a path, later services are asked before earlier ones.
            share_ports: Whether other processes may bind the same ports.
        """
        self._services, self._share_ports = services, share_ports
        self._handlers = Handlers(services)

    def hides(self, name: str) -> bool:
        """Whether the path of a function on the HTTP transport belongs to another service."""
        return self._handlers.hides(name)

    async def open_grpc(self, tls: TlsFiles | None) -> None:
        """Bind the gRPC transport, and begin to answer.

        Raises:
            StartupError: The address cannot be bound.
        """
        config = self._config
        methods = tuple(method for one in self._services for method in one.grpc_methods())
        names = tuple(method.service for method in methods)
        self._grpc = self._make_grpc(tls, methods)
        for one in self._services:
            one.add_servicers(self._grpc.server, names)
        host, _ = config.bind_host()
        port = self._grpc.bind(_address(host, config.grpc_port))
        await self._grpc.start()
        self.grpc_address = _address(host, port)

    async def open_http(self, tls: TlsFiles | None) -> None:
        """Bind the HTTP transport, and begin to answer.

        Raises:
            StartupError: The address cannot be bound.
        """
        from invoker.transports.http.transport import HttpTransport

        config = self._config
        host, _ = config.bind_host()
        self._http = HttpTransport(
            self._driver,
            self._handlers,
            host=host,
            port=config.port,
            settings=self._http_settings(),
            tls=tls,
            share_port=self._share_ports,
            sockets=self._socket,
            unix=config.http_unix,
            unix_mode=config.unix_mode,
        )
        self.http_address = await self._http.start()
        self._handlers.tell_hidden(one.spec.name for one in self._driver.engine.catalog)

    def leave(self) -> None:
        """Ask the clients of the HTTP transport to reconnect; requests are served as before."""
        if self._http is not None:
            self._http.leave()

    async def close(self, grace_s: float) -> None:
        """Close the transports; running calls have ``grace_s`` to end. Idempotent."""
        if self._http is not None:
            await self._http.stop(grace_s)
        if self._grpc is not None:
            await self._grpc.stop(grace_s)

    def _socket(self, path: str) -> SocketHandler | None:
        """The handler of the WebSockets of a path of the HTTP transport."""
        return next((handler for one in reversed(self._services) if (handler := one.socket_handler(path))), None)

    def _http_settings(self) -> HttpSettings:
        from invoker.transports.http.codings import PACKED
        from invoker.transports.http.exchange import HttpSettings

        config = self._config
        codings = PACKED if config.http_compression else ()
        return HttpSettings(
            origins=config.allowed_origins,
            hosts=config.allowed_hosts,
            has_credentials=config.allow_credentials,
            codings=codings,
        )

    def _is_fast(self) -> bool:
        """Whether the fast transport serves; cached, since the check makes a call through grpcio's private layer.

        Raises:
            ConfigError: The settings demand the fast transport, but it does not work.
        """
        if self._fast is None:
            self._fast = False
            if self._config.grpc_driver != "aio":
                from invoker.transports.grpc.cygrpc import unusable

                why = unusable()
                self._fast = not why
                if why and self._config.grpc_driver == "fast":
                    raise ConfigError(
                        f"INVOKER_GRPC_DRIVER is 'fast', which cannot serve with the installed grpcio: {why}"
                    )
                if why:
                    log.warning(
                        "gRPC is served by grpc.aio, because the fast gRPC server cannot use the installed grpcio: %s",
                        why,
                    )
        return self._fast

    def _make_grpc(self, tls: TlsFiles | None, methods: tuple[Method, ...]) -> AioTransport | FastTransport:
        """Make the fast transport, or the public one if that is chosen or the fast one does not work."""
        config = self._config
        credentials = tls.grpc_credentials() if tls is not None else None
        settings = GrpcSettings(
            max_message_bytes=config.max_message_bytes,
            max_streams=config.max_streams,
            window_bytes=config.window_bytes,
            settle_s=config.settle_s,
            share_port=self._share_ports,
            connection_age_s=config.grpc_age_s(has_others=self._share_ports),
        )
        if self._is_fast():
            from invoker.transports.grpc.fast import FastTransport

            return FastTransport(self._driver, methods=methods, credentials=credentials, settings=settings)
        from invoker.transports.grpc.aio import AioTransport

        return AioTransport(self._driver, methods=methods, credentials=credentials, settings=settings)


class MountedTransports(Transports):
    """The HTTP transport of a server to which the ASGI server of another program brings requests.

    Attributes:
        mounted: The transport that gets the requests, once it is open.
    """

    mounted: MountedTransport | None = None

    async def open_http(self, tls: TlsFiles | None) -> None:  # noqa: ARG002 - the host has the connections
        """Make the transport that the host application calls; it has no socket of its own."""
        from invoker.transports.http.mounted import MountedTransport

        self.mounted = MountedTransport(
            self._driver, self._handlers, settings=self._http_settings(), sockets=self._socket
        )
        self.mounted.start()
        self._handlers.tell_hidden(one.spec.name for one in self._driver.engine.catalog)

    def leave(self) -> None:
        """Ask the clients to reconnect; requests are served as before."""
        if self.mounted is not None:
            self.mounted.leave()

    async def close(self, grace_s: float) -> None:
        """Wait for running requests, but no longer than ``grace_s``. Idempotent."""
        if self.mounted is not None:
            await self.mounted.stop(grace_s)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
