"""`GraphPipeService`: attaches GraphPipe's paths to the HTTP transport, and opens its raw sockets.

GraphPipe's modules are imported only when they are needed: at the start if functions have arrays, with a raw socket or
with ``--http-root graphpipe``; otherwise at the first request for one of its paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from invoker.attach.service import Address, Port, Service, Surroundings
from invoker.errors import ConfigError
from invoker.protocols.graphpipe.settings import GraphPipeServiceSettings

if TYPE_CHECKING:
    from invoker.protocols.graphpipe.service.framed import FramedTransport
    from invoker.protocols.graphpipe.service.inferences import Inferences
    from invoker.settings import Config
    from invoker.transports.http.app import Handler

_PATH: Final = "/graphpipe"
_CONTROL: Final = "/control/"

_SHARE: Final = 4
"""The connections of a raw socket may use at most this fraction of the file descriptors, so that idle clients leave
enough for other transports."""


class GraphPipeService(Service):
    """Serves functions as GraphPipe models, over HTTP and on raw sockets."""

    name = "graphpipe"
    on_http = True
    gives_arrays = True
    settings = GraphPipeServiceSettings
    host_settings = ("graphpipe_tcp", "graphpipe_unix", "graphpipe_connections")
    inspection = "invoker.protocols.graphpipe.verbs.inspection"
    needs = "a socket of its own (INVOKER_GRAPHPIPE_TCP or INVOKER_GRAPHPIPE_UNIX) or http beside it"

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._settings = around.config.of(GraphPipeServiceSettings)
        self._is_root = self._settings.http_root == "graphpipe"
        self._inferences: Inferences | None = None
        self._handler: Handler | None = None
        self._sockets: list[FramedTransport] = []
        self._addresses: list[Address] = []

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:
        """Whether the service is served: over HTTP, or on a raw socket."""
        settings = config.of(GraphPipeServiceSettings)
        if not is_chosen and (settings.has_socket or settings.http_root == "graphpipe"):
            given = "INVOKER_HTTP_ROOT, INVOKER_GRAPHPIPE_TCP or INVOKER_GRAPHPIPE_UNIX"
            raise ConfigError(f"{given} is for GraphPipe, and INVOKER_PROTOCOLS does not have graphpipe")
        config.check_unix(settings.graphpipe_unix, "INVOKER_GRAPHPIPE_UNIX")
        if settings.graphpipe_tcp.endswith(":0") and config.workers > 1:
            raise ConfigError("INVOKER_GRAPHPIPE_TCP has port 0; with several workers, give the number of a port")
        return is_chosen and (has_http or settings.has_socket)

    @classmethod
    def ports(cls, config: Config) -> Sequence[Port]:
        """The port of the raw TCP socket, if one is set."""
        host, _, port = config.of(GraphPipeServiceSettings).graphpipe_tcp.rpartition(":")
        return (Port(host.strip("[]"), int(port), "GraphPipe", "INVOKER_GRAPHPIPE_TCP"),) if port else ()

    async def start(self) -> None:
        """Check the functions if they have arrays, and bind the raw sockets.

        Raises:
            SpecError: An annotation declares an invalid shape.
            StartupError: An address cannot be bound.
        """
        from invoker.codecs import wants_arrays

        has_socket, catalog = self._settings.has_socket, self.around.driver.engine.catalog
        if has_socket or self._is_root or any(wants_arrays(one.spec.types) for one in catalog):
            self._made()
        if has_socket:
            await self._bind()

    def leave(self) -> None:
        """Stop accepting connections on the raw sockets."""
        for transport in self._sockets:
            transport.leave()

    async def stop(self, grace_s: float) -> None:
        """Close the raw sockets; running requests have ``grace_s`` seconds to end. Idempotent."""
        for transport in self._sockets:
            await transport.stop(grace_s)

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses of the raw TCP and the raw Unix socket."""
        return self._addresses

    def http_handler(self, path: str) -> Handler | None:
        """The handler of GraphPipe's paths, or of every path if GraphPipe is the root (G-107)."""
        is_ours = self._is_root or path == _PATH or path.startswith((f"{_PATH}/", _CONTROL))
        if not is_ours:
            return None
        if self._handler is None:
            from invoker.protocols.graphpipe.service.http import GraphPipeHandler

            self._handler = GraphPipeHandler(self._made(), path=_PATH, is_ready=self.around.is_ready)
        return self._handler

    async def _bind(self) -> None:
        from invoker.protocols.graphpipe.service.framed import FramedTransport

        settings, tls = self._settings, self.around.tls
        if settings.graphpipe_tcp:
            context = tls.server_context() if tls is not None else None
            tcp = FramedTransport(self._made(), settings.graphpipe_tcp, tls=context, share_port=self.around.share_port)
            self._sockets.append(tcp)
            address = await tcp.start()
            self._addresses.append(Address(self.name, address, int(address.rpartition(":")[2])))
        if settings.graphpipe_unix:
            unix = FramedTransport(
                self._made(), settings.graphpipe_unix, is_unix=True, mode=self.around.config.unix_mode
            )
            self._sockets.append(unix)
            self._addresses.append(Address(self.name, await unix.start()))

    def _made(self) -> Inferences:
        if self._inferences is None:
            from invoker.protocols.graphpipe.service.inferences import GraphPipeSettings, Inferences
            from invoker.transports.sockets import open_files

            known = self._settings
            settings = GraphPipeSettings(
                limit_bytes=known.graphpipe_bytes,
                timeout_s=known.graphpipe_timeout_s,
                is_root=self._is_root,
                plain_status=known.graphpipe_errors == "200",
                connections=min(known.graphpipe_connections, open_files() // _SHARE),
            )
            self._inferences = Inferences(self.around.driver, settings, note=self.around.note)
        return self._inferences
