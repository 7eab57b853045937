"""`SyncFederatedClient`: a device for programs without an event loop."""

from __future__ import annotations

from typing import Any, Self

from invoker.connect.portal import Portal
from invoker.connect.sync import SyncPart, blocking
from invoker.protocols.federated.client.client import FederatedClient

__all__ = ["SyncFederatedClient"]


class SyncFederatedClient(SyncPart[FederatedClient]):
    """One device; each method blocks until it is done.

    Args:
        args: The positional arguments of `FederatedClient`.
        options: The keyword arguments of `FederatedClient`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(Portal(), FederatedClient(*args, **options))

    once = blocking(FederatedClient.once)
    run = blocking(FederatedClient.run)
    wait = blocking(FederatedClient.wait)

    def close(self) -> None:
        """Cancel what is under way. Idempotent."""
        if self._portal.is_open:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
