"""Bare sockets of GraphPipe, for tests of their connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from invoker.protocols.graphpipe.service.framed import FramedTransport
from invoker.protocols.graphpipe.service.inferences import Inferences
from tests.tensors.samples import fixture
from tests.transports.models import inferring

REQUEST = fixture("infer_request")


def double(x: NDArray[Any]) -> NDArray[Any]:
    return x * 2


class Place:
    """A transport on a TCP or a Unix socket."""

    def __init__(self, inferences: Inferences, path: Path | None, tcp: str = "127.0.0.1:0") -> None:
        self.inferences = inferences
        self.transport = FramedTransport(inferences, str(path or tcp), is_unix=path is not None)
        self.address = ""
        self._clients: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.address.startswith("/"):
            reader, writer = await asyncio.open_unix_connection(self.address)
        else:
            host, _, port = self.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        self._clients.append(writer)
        return reader, writer

    async def stop(self) -> None:
        for one in self._clients:
            one.transport.abort()
        await self.transport.stop(0)

    @property
    def count(self) -> int:
        return len(self.transport._connections)


@asynccontextmanager
async def opened(path: Path | None, function: Any = double, **settings: Any) -> AsyncIterator[Place]:
    async with inferring(function, **settings) as inferences:
        place = Place(inferences, path)
        place.address = await place.transport.start()
        try:
            yield place
        finally:
            await place.stop()
