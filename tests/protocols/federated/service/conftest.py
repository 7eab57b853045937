"""Servers of rounds in the process of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from invoker.cli.main import build
from invoker.protocols.federated.service.attach import FederatedService
from invoker.protocols.federated.service.rounds import Rounds
from invoker.server.server import Server
from invoker.server.table import TABLE

Serve: TypeAlias = Callable[..., AbstractAsyncContextManager[Server]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves a file of rounds, whose text is given."""

    @asynccontextmanager
    async def serving(text: str, **settings: Any) -> AsyncIterator[Server]:
        path = tmp_path / "rounds.toml"
        path.write_text(text)
        given = {"host": "127.0.0.1", "grpc_port": 0, "port": 0, "grpc_driver": "aio", **settings}
        server = build(TABLE.configured(federated=str(path), **given), str(path))
        try:
            await server.start()
            yield server
        finally:
            await server.stop(drain_s=2.0)

    return serving


def rounds_of(server: Server) -> Rounds:
    """The rounds of a server."""
    (service,) = (one for one in server._services if isinstance(one, FederatedService))
    assert service._rounds is not None
    return service._rounds


def coordinator_of(server: Server) -> Any:
    """The coordinator of a server."""
    return rounds_of(server).coordinator
