"""A peer for the tests of the client.

Async tests run it on their own loop; who looks for tasks that were left behind takes the one in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.protocols.riff.client.peer import Peer, serve, serve_in_thread


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A peer on the loop of the test that has seen nothing yet."""
    async with serve() as running:
        yield running


@pytest.fixture
def threaded_peer() -> Iterator[Peer]:
    """A peer on a loop of its own, for tests that have none."""
    with serve_in_thread() as running:
        yield running
