"""Serves functions by GraphPipe on loopback; shared by the tests of its transports."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from invoker.author.lift import lift
from invoker.author.reader import read
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.streams import Limits
from invoker.execution.driver import Driver, DriverSettings
from invoker.protocols.graphpipe.service.http import GraphPipeHandler
from invoker.protocols.graphpipe.service.inferences import GraphPipeSettings, Inferences
from invoker.transports.http.exchange import HttpSettings
from tests.transports.served import Served


@asynccontextmanager
async def inferring(
    *functions: Any, max_invocations: int = 0, limits: Limits | None = None, **settings: Any
) -> AsyncIterator[Inferences]:
    """Inferences with a driver of their own."""
    lifted = [lift(one, read(one)) for one in functions]
    engine = Engine(Catalog(lifted), builtin(arrays=True), limits=limits or Limits(), max_invocations=max_invocations)
    driver = Driver(engine, DriverSettings(grace_s=0.5))
    for one in lifted:
        await one.start()
    try:
        yield Inferences(driver, GraphPipeSettings(**settings))
    finally:
        await driver.left(5)
        driver.close()
        for one in lifted:
            await one.stop()


@asynccontextmanager
async def serving_models(
    *functions: Any,
    max_invocations: int = 0,
    is_well: bool = True,
    unix: str = "",
    http: HttpSettings | None = None,
    **settings: Any,
) -> AsyncIterator[Served]:
    """The HTTP transport with GraphPipe's paths."""
    made: list[GraphPipeHandler] = []

    async def is_ready() -> bool:
        return is_well

    def handler(path: str) -> GraphPipeHandler | None:
        is_ours = settings.get("is_root") or path.startswith(("/graphpipe", "/control/"))
        return made[0] if is_ours else None

    async with Served.at(
        *functions, max_invocations=max_invocations, handler=handler, unix=unix, settings=http
    ) as served:
        inferences = Inferences(served.driver, GraphPipeSettings(**settings))
        made.append(GraphPipeHandler(inferences, path="/graphpipe", is_ready=is_ready))
        yield served


async def exchanged(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, buffer: bytes) -> bytes:
    """Send one message behind its length, and read one."""
    writer.write(struct.pack("<I", len(buffer)) + buffer)
    await writer.drain()
    (size,) = struct.unpack("<I", await reader.readexactly(4))
    return await reader.readexactly(size)
