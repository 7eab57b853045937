"""A bridge for the tests of its client; see `tests.protocols.riff.client.conftest`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from invoker.client.toolbridge import ToolBridge, ToolSession
from tests.protocols.toolbridge.client.peer import Peer, serve, serve_in_thread


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A bridge on the loop of the test that has seen nothing yet."""
    async with serve() as running:
        yield running


@pytest.fixture
async def bridge(peer: Peer) -> AsyncIterator[ToolBridge]:
    """A client of it, which does not wait before it tries again."""
    async with ToolBridge(peer.target, retry_waits_s=(0.0, 0.0, 0.0)) as client:
        yield client


@pytest.fixture
async def session(bridge: ToolBridge) -> AsyncIterator[ToolSession]:
    """A session there."""
    async with bridge.session("s") as made:
        yield made


@pytest.fixture
def threaded_peer() -> Iterator[Peer]:
    """A bridge on a loop of its own, for tests that have none."""
    with serve_in_thread() as running:
        yield running
