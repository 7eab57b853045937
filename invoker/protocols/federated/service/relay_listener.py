"""`RelayListener`: the socket at which a leader accepts conversations from other processes of the same service.

It is a Unix socket in a folder that only this user can enter. A caller must send the token that the leader wrote to the
store.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from invoker.core.peers import PEER
from invoker.core.steps import Close
from invoker.errors import Status, StatusError
from invoker.execution.driver import Driver
from invoker.message import Headers
from invoker.protocols.federated.service.relay import PASS, RELAYED_PEER
from invoker.transports.grpc.aio import AioTransport
from invoker.transports.grpc.loopcall import Listener
from invoker.transports.grpc.methods import LoopMethod, OnClose
from invoker.transports.grpc.settings import GrpcSettings

_PREFIX: Final = "invoker-rounds-"
_SOCKET: Final = "door"

_YOUNG_S: Final = 60.0
"""A socket that is younger, in seconds, may just have been bound and not listen yet."""


class RelayListener:
    """Accepts relayed conversations.

    Args:
        method: The gRPC method for conversations with devices.
        driver: Runs the conversations.
        settings: The settings of the gRPC transport.

    Attributes:
        address: The path of the socket, after `start`.
        token: The token that relays must send.
    """

    def __init__(self, method: LoopMethod, driver: Driver, settings: GrpcSettings) -> None:
        self.token = secrets.token_urlsafe(32)
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self.address = str(self._folder / _SOCKET)
        self._method = method
        own = LoopMethod(method.service, method.name, self._session, self._begin)
        self._transport = AioTransport(driver, methods=(own,), settings=settings)

    async def start(self) -> None:
        """Start to listen, and remove the sockets of killed processes."""
        _clear_away_old(self._folder.parent)
        self._transport.bind(f"unix:{self.address}")
        await self._transport.start()

    async def stop(self, grace_s: float) -> None:
        """Close the socket, and give calls ``grace_s`` seconds to end."""
        await self._transport.stop(grace_s)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _session(self, metadata: Headers) -> Headers:
        return metadata

    def _begin(self, metadata: Headers, wire: object, driver: Driver, on_close: OnClose, **given: object) -> Listener:
        if not secrets.compare_digest(metadata.get(PASS, "").encode(), self.token.encode()):
            on_close(Close(StatusError(Status.UNAUTHENTICATED, "this socket is for processes of one service")))
            return _Refused()
        own = {name: value for name, value in metadata.items() if name not in (PASS, RELAYED_PEER)}
        told = Headers({**own, PEER: metadata.get(RELAYED_PEER, "")})
        begin: Callable[..., Listener] = self._method.reactor
        return begin(self._method.session(told), wire, driver, on_close, is_relayed=True, **given)


def _clear_away_old(folder: Path) -> None:
    """Remove sockets of this user at which no process listens.

    A process that is killed does not remove its socket.
    """
    for path in folder.glob(f"{_PREFIX}*/{_SOCKET}"):
        with suppress(OSError):
            about = path.lstat()
            if about.st_uid != os.getuid() or time.time() - about.st_mtime < _YOUNG_S:
                continue
            with socket.socket(socket.AF_UNIX) as probe:
                probe.setblocking(False)
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:
                    shutil.rmtree(path.parent, ignore_errors=True)


class _Refused:
    """The listener of a conversation that was refused."""

    settles = False

    def arrived(self, frame: bytes | None) -> bool:  # noqa: ARG002 - the listener's interface
        """Ignore frames, since the call was refused."""
        return True

    def gone(self) -> None:
        """Do nothing, since the end was already reported."""
