"""`HealthService`: attaches grpc.health.v1 and reflection to the gRPC transport of every process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from invoker.attach.service import Service

if TYPE_CHECKING:
    from invoker.server.endpoints.statuses import Health

_PULSE_S = 1.0


class HealthService(Service):
    """Reports whether this process is ready and, unless reflection is off, which services it has (R-015)."""

    name = "health"
    _health: Health | None = None
    _pulse: asyncio.Task[None] | None = None

    def add_servicers(self, server: Any, names: Sequence[str]) -> None:
        """Add health and, if it is on, reflection to a server; watchers get a change within a second."""
        from invoker.server.endpoints.statuses import Health

        self._health = Health(tuple(names), self.around.is_ready)
        self._health.add_to(server)
        if self.around.config.reflection:
            from invoker.server.endpoints.reflection import add_reflection

            add_reflection(names, server, self.around.files)
        self._pulse = asyncio.get_running_loop().create_task(self._beat(self._health), name="health")

    async def refresh(self) -> None:
        """Notify the watchers of a change at once."""
        if self._health is not None:
            await self._health.refresh()

    async def stop(self, grace_s: float) -> None:  # noqa: ARG002 - watchers are not waited for
        """Stop looking for changes, without waiting for watchers."""
        if self._pulse is not None:
            self._pulse.cancel()

    @staticmethod
    async def _beat(health: Health) -> None:
        while True:
            await asyncio.sleep(_PULSE_S)
            await health.refresh()
