"""A peer for the tests of the client; in a thread, so that tests may look at their own loop for what is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.peer import Peer, serve_in_thread


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A running peer that has seen nothing yet."""
    with serve_in_thread() as running:
        yield running
