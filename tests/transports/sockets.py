"""Opens HTTP transports with sessions over WebSocket on loopback, and a peer that speaks it frame by frame."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.extensions import PerMessageDeflate

from invoker.author.lift import lift
from invoker.author.reader import read
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.execution.driver import Driver, DriverSettings
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.wire import (
    Action,
    Chunk,
    Fragment,
    Metadata,
    WireMessage,
    decode,
    encode,
)
from invoker.protocols.evergreen.service.action_engine import ActionEngineHandler
from invoker.transports.http.app import SocketSettings
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.transport import HttpTransport

TEXT = Metadata("text/plain")


@dataclass
class Served:
    """An open transport, what runs behind it, and the application with its count of sessions."""

    address: str
    transport: HttpTransport
    driver: Driver
    app: ActionEngineHandler

    def peer(self, path: str = "/", **how: Any) -> AbstractAsyncContextManager[Peer]:
        """A connection that is cut at the end of the block."""
        return open_peer(self.address, path, **how)


@asynccontextmanager
async def serving(
    *functions: Any,
    known: ActionEngineSettings | None = None,
    origins: tuple[str, ...] = (),
    path: str = "/",
    sessions: int = 1000,
    **settings: Any,
) -> AsyncIterator[Served]:
    """Serve functions as actions on a free port until the end of the block; settings are those of the sockets."""
    lifted = [lift(one, read(one)) for one in functions]
    driver = Driver(Engine(Catalog(lifted), builtin()), DriverSettings(grace_s=0.5))
    known = known or ActionEngineSettings()
    app = ActionEngineHandler(driver, known, SocketSettings(**settings), sessions=sessions)
    sockets = {path: app}
    transport = HttpTransport(
        driver, lambda _: None, port=0, sockets=sockets.get, settings=HttpSettings(origins=origins)
    )
    for one in lifted:
        await one.start()
    with patch("invoker.execution.bodies.pool._IDLE_S", 0.05):  # so that no thread outlives its test
        try:
            yield Served(await transport.start(), transport, driver, app)
        finally:
            await transport.stop(1)
            await driver.left(5)
            driver.close()
            for one in lifted:
                await one.stop()


@dataclass
class Peer:
    """The client's end of one connection.

    Attributes:
        status: Of the handshake.
        code: Of the closing frame that came; 0 until then.
        reason: In it.
        subprotocol: That was agreed on.
        pings: That came.
        pongs: That came.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    code: int = 0
    pings: int = 0
    pongs: list[bytes] = field(default_factory=list)
    _wire: WSConnection = field(default_factory=lambda: WSConnection(ConnectionType.CLIENT))
    reason: str = ""
    subprotocol: str = ""
    _messages: list[bytes | str] = field(default_factory=list)
    _parts: list[Any] = field(default_factory=list)

    async def connect(
        self,
        address: str,
        path: str,
        *,
        origin: str = "",
        deflate: bool = False,
        headers: dict[str, str] | None = None,
        subprotocols: Sequence[str] = (),
    ) -> None:
        """Shake hands."""
        extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        if origin:
            extra.append((b"Origin", origin.encode()))
        extensions = [PerMessageDeflate()] if deflate else []
        about = {"extra_headers": extra, "extensions": extensions, "subprotocols": list(subprotocols)}
        await self.send(Request(host=address, target=path, **about))
        while not self.status:
            if not await self._turn():
                return

    async def send(self, event: Any) -> None:
        """Send any frame."""
        await self.raw(self._wire.send(event))

    async def raw(self, data: bytes) -> None:
        """Send any bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def say(self, *parts: Fragment | Action) -> None:
        """Send one message."""
        fragments = [one for one in parts if isinstance(one, Fragment)]
        actions = [one for one in parts if isinstance(one, Action)]
        await self.send(BytesMessage(data=encode(fragments, actions)))

    async def text(self, data: str) -> None:
        """Send one message of the other kind."""
        await self.send(TextMessage(data=data))

    async def hear(self) -> WireMessage:
        """The next message; EOFError when the connection closes instead."""
        frame = await self.message()
        assert isinstance(frame, bytes)
        return decode(frame)

    async def message(self) -> bytes | str:
        """The next message as it is; EOFError when the connection closes instead."""
        while not self._messages:
            if not await self._turn():
                raise EOFError
        return self._messages.pop(0)

    async def messages(self) -> list[bytes | str]:
        """All that come until the connection is closed."""
        await self.closed()
        found, self._messages = self._messages, []
        return found

    async def fragments(self, last: str = "#__status__") -> list[Fragment]:
        """All fragments up to one of a node whose id ends so, without those that say that an action was accepted."""
        found: list[Fragment] = []
        while not found or not found[-1].id.endswith(last):
            found += (await self.hear()).fragments
        return [one for one in found if not one.id.endswith("#__dispatch_status__")]

    async def closed(self) -> int:
        """Read to the end of the connection; the code of the closing frame, or 0."""
        while await self._turn():
            pass
        return self.code

    async def _turn(self) -> bool:
        """Read once; whether there may be more."""
        try:
            data = await self.reader.read(65536)
        except ConnectionError:
            return False
        self._wire.receive_data(data or None)
        for event in self._wire.events():
            await self._take(event)
        return bool(data)

    async def _take(self, event: Any) -> None:
        if isinstance(event, AcceptConnection):
            self.status = 101
            self.subprotocol = event.subprotocol or ""
        elif isinstance(event, RejectConnection):
            self.status = event.status_code
        elif isinstance(event, BytesMessage | TextMessage):
            self._parts.append(event.data)
            if event.message_finished:
                self._messages.append(type(event.data)().join(self._parts))
                self._parts.clear()
        elif isinstance(event, CloseConnection) and not self.code:
            self.code, self.reason = event.code, event.reason or ""
            if self._wire.state is ConnectionState.REMOTE_CLOSING:
                with contextlib.suppress(ConnectionError, RuntimeError):  # one of the two has ended the bytes
                    await self.send(event.response())
        elif isinstance(event, Ping):
            self.pings += 1
            await self.send(event.response())
        elif isinstance(event, Pong):
            self.pongs.append(bytes(event.payload))


@asynccontextmanager
async def open_peer(address: str, path: str = "/", **how: Any) -> AsyncIterator[Peer]:
    """A connection to any server, cut at the end of the block."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    peer = Peer(reader, writer)
    try:
        await peer.connect(address, path, **how)
        yield peer
    finally:
        writer.transport.abort()


def item(id: str, seq: int | None = 0, data: bytes = b"x", *, last: bool = False) -> Fragment:
    """A fragment with text."""
    return Fragment(id, Chunk(data, metadata=TEXT), seq, continued=not last)


def texts(fragments: list[Fragment], node: str) -> list[bytes]:
    """The data of a node's items."""
    contents = [one.content for one in fragments if one.id == node and not one.is_end]
    return [one.data for one in contents if isinstance(one, Chunk)]
