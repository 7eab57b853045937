"""`SyncFederatedClient`: a device for programs without an event loop."""

from __future__ import annotations

from typing import Any, Self

from invoker.connect.portal import Portal
from invoker.protocols.federated.client.client import FederatedClient
from invoker.protocols.federated.client.messages import Attempt

__all__ = ["SyncFederatedClient"]


class SyncFederatedClient:
    """One device; each method blocks until it is done.

    Args:
        args: The positional arguments of `FederatedClient`.
        options: The keyword arguments of `FederatedClient`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._client = FederatedClient(*args, **options)
        self._portal = Portal()

    def once(self) -> Attempt:
        """Take part once; waits for no window."""
        return self._portal.run(self._client.once())

    def run(self, times: int = 0) -> None:
        """Take part ``times`` times, each in its window; 0: until ``should_abort`` says yes."""
        self._portal.run(self._client.run(times))

    def close(self) -> None:
        """Cancel what is under way. Idempotent."""
        if self._portal.is_open:
            self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
