"""grpc.health.v1 for a grpc.aio server; the statuses follow the process's readiness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from grpc_health.v1 import health, health_pb2, health_pb2_grpc

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health(health.aio.HealthServicer):  # type: ignore[misc]  # the package has no types
    """Check, Watch and List for this process (``""``) and each of its services (R-015).

    Args:
        services: Full names of the gRPC services served.
        is_ready: Whether the process is ready; called at each Check and List, so that the status is never stale.
    """

    def __init__(self, services: tuple[str, ...], is_ready: Callable[[], Awaitable[bool]]) -> None:
        super().__init__()
        self._services = ("", *services)
        self._is_ready = is_ready
        for service in self._services:
            self._server_status[service] = _SERVING

    def add_to(self, server: Any) -> None:
        """Serve grpc.health.v1 on a server of grpc.aio."""
        health_pb2_grpc.add_HealthServicer_to_server(self, server)

    async def refresh(self) -> bool:
        """Update every status, which wakes the watchers of the changed ones."""
        ready = await self._is_ready()
        status = _SERVING if ready else _NOT_SERVING
        for service in self._services:
            if self._server_status.get(service) != status:
                await self.set(service, status)
        return ready

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 - the method's name on the wire
        """Answer for one service; NOT_FOUND for a service that is not served."""
        await self.refresh()
        return await super().Check(request, context)

    async def List(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - the method's name on the wire
        """The status of every service, by its name."""
        await self.refresh()
        statuses = {
            service: health_pb2.HealthCheckResponse(status=status) for service, status in self._server_status.items()
        }
        return health_pb2.HealthListResponse(statuses=statuses)
