"""`invoker.protocols.federated.client.sync`: a device without a loop."""

from __future__ import annotations

import pytest

from invoker.client.federated import DeviceOptions, SyncFederatedClient
from invoker.errors import Status


def test_a_device_without_a_loop() -> None:
    """It takes part and comes back with how that ended; after its end it refuses."""
    with SyncFederatedClient("127.0.0.1:9", "iris", options=DeviceOptions(secagg=False)) as client:
        attempt = client.once()
    assert (attempt.end, attempt.status) == ("lost", Status.UNAVAILABLE)
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        client.run(1)
