"""`GraphPipeService`: attaches GraphPipe's paths to the HTTP door, and opens its bare sockets, as the knobs say.

Nothing of GraphPipe is imported before somebody asks for it: a start with functions of arrays, with a bare socket or
with ``--http-root graphpipe``, else the first request for one of its paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from invoker.services.service import Address, Service, Surroundings

if TYPE_CHECKING:
    from invoker.doors.http.app import Front
    from invoker.services.graphpipe.door import FramedDoor
    from invoker.services.graphpipe.inferences import Inferences

__all__ = ["GraphPipeService"]

_PATH: Final = "/graphpipe"
_CONTROL: Final = "/control/"

_SHARE: Final = 4
"""A bare socket takes at most one of so many descriptors, lest idle clients of it leave none for the other doors."""


class GraphPipeService(Service):
    """GraphPipe's models."""

    name = "graphpipe"
    on_http = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._is_root = around.config.http_root == "graphpipe"
        self._inferences: Inferences | None = None
        self._front: Front | None = None
        self._sockets: list[FramedDoor] = []
        self._addresses: list[Address] = []

    async def start(self) -> None:
        """Check the functions, if that is quick, and bind the sockets.

        Raises:
            SpecError: An annotation declares a shape that is none.
            StartupError: An address cannot be bound.
        """
        from invoker.codecs import wants_arrays

        config, catalog = self.around.config, self.around.driver.engine.catalog
        has_sockets = bool(config.graphpipe_tcp or config.graphpipe_unix)
        if has_sockets or self._is_root or any(wants_arrays(one.spec.types) for one in catalog):
            self._made()
        if has_sockets:
            await self._bind()

    def leave(self) -> None:
        """Accept no more on the sockets."""
        for door in self._sockets:
            door.leave()

    async def stop(self, grace_s: float) -> None:
        """Close the sockets; requests under way have ``grace_s``. Idempotent."""
        for door in self._sockets:
            await door.stop(grace_s)

    @property
    def addresses(self) -> Sequence[Address]:
        """Those of the sockets."""
        return self._addresses

    def http_front(self, path: str) -> Front | None:
        """Who answers its own paths, or every one if it is the root (G-107)."""
        is_ours = self._is_root or path == _PATH or path.startswith((f"{_PATH}/", _CONTROL))
        if not is_ours:
            return None
        if self._front is None:
            from invoker.services.graphpipe.http import GraphPipeFront

            self._front = GraphPipeFront(self._made(), path=_PATH, is_ready=self.around.is_ready)
        return self._front

    async def _bind(self) -> None:
        from invoker.services.graphpipe.door import FramedDoor

        config, tls = self.around.config, self.around.tls
        if config.graphpipe_tcp:
            context = tls.server_context() if tls is not None else None
            tcp = FramedDoor(self._made(), config.graphpipe_tcp, tls=context, share_port=self.around.share_port)
            self._sockets.append(tcp)
            address = await tcp.start()
            self._addresses.append(Address(self.name, address, int(address.rpartition(":")[2])))
        if config.graphpipe_unix:
            unix = FramedDoor(self._made(), config.graphpipe_unix, is_unix=True, mode=config.unix_mode)
            self._sockets.append(unix)
            self._addresses.append(Address(self.name, await unix.start()))

    def _made(self) -> Inferences:
        if self._inferences is None:
            from invoker.doors.sockets import open_files
            from invoker.services.graphpipe.inferences import GraphPipeSettings, Inferences

            config = self.around.config
            settings = GraphPipeSettings(
                limit_bytes=config.graphpipe_bytes,
                timeout_s=config.graphpipe_timeout_s,
                is_root=self._is_root,
                plain_status=config.graphpipe_errors == "200",
                connections=min(config.graphpipe_connections, open_files() // _SHARE),
            )
            self._inferences = Inferences(self.around.driver, settings, note=self.around.note)
        return self._inferences
