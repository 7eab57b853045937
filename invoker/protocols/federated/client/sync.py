"""`SyncFederatedClient`: a device for programs without an event loop."""

from __future__ import annotations

from typing import Self

from invoker.connect.portal import Portal
from invoker.connect.sync import SyncPart, blocking, opening
from invoker.protocols.federated.client.client import FederatedClient


class SyncFederatedClient(SyncPart[FederatedClient]):
    """One device of a population, with blocking methods; the arguments are those of `FederatedClient`."""

    @opening(FederatedClient)
    def __init__(self, source: FederatedClient) -> None:
        super().__init__(Portal(), source)

    once = blocking(FederatedClient.once)
    run = blocking(FederatedClient.run)
    wait = blocking(FederatedClient.wait)

    def close(self) -> None:
        """Cancel the running conversation. Idempotent."""
        if self._portal.is_open:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
