"""Opens HTTP transports on loopback; shared by the tests of the HTTP transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import httpx

from invoker.author.lift import lift
from invoker.author.reader import read
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.streams import Limits
from invoker.execution.driver import Driver, DriverSettings
from invoker.protocols.web.service.functions import FunctionsHandler
from invoker.protocols.web.service.http import RiffHandler
from invoker.protocols.web.service.sockets import Sockets
from invoker.server.endpoints.pages import PATHS, PagesHandler
from invoker.transports.http.app import Handler, HandlerOf, SocketSettings
from invoker.transports.http.transport import HttpTransport
from tests.transports.sockets import Peer, open_peer


@dataclass
class Served:
    """An open transport.

    Attributes:
        address: ``host:port``.
        transport: It.
        driver: What runs behind it.
    """

    address: str
    transport: HttpTransport
    driver: Driver

    @classmethod
    @asynccontextmanager
    async def at(
        cls,
        *functions: Any,
        max_invocations: int = 0,
        limits: Limits | None = None,
        handler: HandlerOf = lambda _: None,
        socket: SocketSettings | None = None,
        riff: Mapping[str, Any] = {},
        is_ready: Callable[[], Awaitable[bool]] | None = None,
        metrics: Callable[[], tuple[str, bytes]] = lambda: ("", b""),
        spoken: Callable[[], tuple[tuple[str, str], ...]] = tuple,
        hides: Callable[[str], bool] = lambda _: False,
        **settings: Any,
    ) -> AsyncIterator[Served]:
        """Serve functions, the pages and the descriptions on a free port until the end of the block.

        riff answers what ``handler`` does not.
        """
        lifted = [lift(one, read(one)) for one in functions]
        engine = Engine(Catalog(lifted), builtin(), max_invocations=max_invocations, limits=limits or Limits())
        driver = Driver(engine, DriverSettings(grace_s=0.5))
        answering = RiffHandler(driver, **riff)

        async def takes_calls() -> bool:
            return not engine.is_draining

        pages = PagesHandler(is_ready or takes_calls, metrics)
        telling = FunctionsHandler(engine, spoken, hides)

        def handler_of(path: str) -> Handler:
            own = pages if path in PATHS else telling if path in telling.paths else None
            return own or handler(path) or answering

        sockets = Sockets(driver, socket or SocketSettings())
        transport = HttpTransport(driver, handler_of, port=0, sockets=sockets.handler, **settings)
        for one in lifted:
            await one.start()
        with patch("invoker.execution.bodies.pool._IDLE_S", 0.05):  # so that no thread outlives its test
            try:
                yield cls(await transport.start(), transport, driver)
            finally:
                await transport.stop(1)
                await driver.left(5)
                driver.close()
                for one in lifted:
                    await one.stop()

    @asynccontextmanager
    async def client(self, *, http2: bool = False) -> AsyncIterator[httpx.AsyncClient]:
        """A client of HTTP/1.1, or of HTTP/2 with prior knowledge."""
        base = f"http://{self.address}"
        async with httpx.AsyncClient(http1=not http2, http2=http2, base_url=base, trust_env=False) as client:
            yield client

    async def post(self, content: Any = b"", **headers: str) -> httpx.Response:
        """One request to /; underscores in header names stand for hyphens."""
        async with self.client() as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.post("/", content=content, headers=named)

    def peer(self, path: str, **how: Any) -> AbstractAsyncContextManager[Peer]:
        """A connection of WebSocket, cut at the end of the block."""
        return open_peer(self.address, path, **how)

    @asynccontextmanager
    async def wire(self) -> AsyncIterator[Wire]:
        """A bare connection."""
        host, _, port = self.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            yield Wire(reader, writer)
        finally:
            writer.transport.abort()


@dataclass
class Wire:
    """A connection without a client's manners."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: str | bytes) -> None:
        """Write as it is."""
        for part in parts:
            self.writer.write(part.encode() if isinstance(part, str) else part)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read one response that says its length."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(line.split(" ")[1]), headers, body

    async def ended(self) -> bytes:
        """What comes until the other side ends the connection, however rudely."""
        data = b""
        try:
            while chunk := await self.reader.read(65536):
                data += chunk
        except ConnectionError:
            pass
        return data


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is so; the test's own limit bounds it."""
    while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0.001)
