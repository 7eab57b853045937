"""The peer of riff's client, for the tests of what clients share."""

from __future__ import annotations

from tests.protocols.riff.client.conftest import peer, threaded_peer

__all__ = ["peer", "threaded_peer"]
