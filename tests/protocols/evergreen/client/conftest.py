"""A peer for the tests of Evergreen sessions, on the loop of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.protocols.evergreen.client.peer import Peer, serve


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A peer that has seen nothing yet."""
    async with serve() as running:
        yield running
