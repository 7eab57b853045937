"""`ModelDoors`: GraphPipe's paths of the HTTP door and its bare sockets, as the knobs say.

Nothing of GraphPipe is imported before somebody asks for it: a start with functions of arrays, with a bare socket or
with ``--http-root graphpipe``, else the first request for one of its paths.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from invoker.config import Config
from invoker.doors.http.app import Front, IsReady
from invoker.doors.sockets import open_files
from invoker.drive.driver import Driver

if TYPE_CHECKING:
    from invoker.services.graphpipe.framed import FramedDoor
    from invoker.services.graphpipe.inferences import Inferences, Note

__all__ = ["ModelDoors"]

_PATH: Final = "/graphpipe"
_CONTROL: Final = "/control/"

_SHARE: Final = 4
"""A bare socket takes at most one of so many descriptors, lest idle clients of it leave none for the other doors."""


class ModelDoors:
    """What of GraphPipe is served. Whoever starts it stops it.

    Args:
        config: Every knob.
        driver: Runs the conversations.
        is_ready: Whether this process should get traffic.
        note: Takes the line that each request leaves in the log; None: it is logged.

    Attributes:
        tcp_address: ``host:port`` once started; empty when none is served.
        unix_address: Path of the socket, likewise.
    """

    def __init__(self, config: Config, driver: Driver, is_ready: IsReady, *, note: Note | None = None) -> None:
        self.tcp_address = ""
        self.unix_address = ""
        self._config = config
        self._driver = driver
        self._is_ready = is_ready
        self._note = note
        self._is_root = config.http_root == "graphpipe"
        self._inferences: Inferences | None = None
        self._front: Front | None = None
        self._sockets: list[FramedDoor] = []

    async def start(self, *, tls: ssl.SSLContext | None, share_port: bool, has_arrays: bool) -> None:
        """Check the functions, if that is quick, and bind the sockets.

        Args:
            tls: For TCP; None serves plain text.
            share_port: Whether other processes may bind the same port.
            has_arrays: Whether a function takes or gives arrays.

        Raises:
            SpecError: An annotation declares a shape that is none.
            StartupError: An address cannot be bound.
        """
        config = self._config
        if has_arrays or self._is_root or config.graphpipe_tcp or config.graphpipe_unix:
            self._made()
        if not (config.graphpipe_tcp or config.graphpipe_unix):
            return
        from invoker.services.graphpipe.framed import FramedDoor

        if config.graphpipe_tcp:
            door = FramedDoor(self._made(), config.graphpipe_tcp, tls=tls, share_port=share_port)
            self._sockets.append(door)
            self.tcp_address = await door.start()
        if config.graphpipe_unix:
            door = FramedDoor(self._made(), config.graphpipe_unix, is_unix=True, mode=config.unix_mode)
            self._sockets.append(door)
            self.unix_address = await door.start()

    def leave(self) -> None:
        """Accept no more on the sockets."""
        for door in self._sockets:
            door.leave()

    async def stop(self, grace_s: float) -> None:
        """Close the sockets; requests under way have ``grace_s``. Idempotent."""
        for door in self._sockets:
            await door.stop(grace_s)

    def front(self, path: str) -> Front | None:
        """Who answers a path of the HTTP door; None: it is not ours (G-107)."""
        is_ours = self._is_root or path == _PATH or path.startswith((f"{_PATH}/", _CONTROL))
        if not is_ours:
            return None
        if self._front is None:
            from invoker.services.graphpipe.paths import GraphPipeFront

            self._front = GraphPipeFront(self._made(), path=_PATH, is_ready=self._is_ready)
        return self._front

    def _made(self) -> Inferences:
        if self._inferences is None:
            from invoker.services.graphpipe.inferences import GraphPipeSettings, Inferences

            config = self._config
            settings = GraphPipeSettings(
                limit_bytes=config.graphpipe_bytes,
                timeout_s=config.graphpipe_timeout_s,
                is_root=self._is_root,
                plain_status=config.graphpipe_errors == "200",
                connections=min(config.graphpipe_connections, open_files() // _SHARE),
            )
            self._inferences = Inferences(self._driver, settings, note=self._note)
        return self._inferences
