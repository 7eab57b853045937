"""`ToolBridgeService`: attaches the tool bridge to the gRPC door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from invoker.services.service import Service

if TYPE_CHECKING:
    from invoker.doors.grpc.methods import Method

__all__ = ["ToolBridgeService"]


class ToolBridgeService(Service):
    """The tool bridge."""

    name = "toolbridge"
    on_grpc = True
    is_default = False

    def grpc_methods(self) -> Sequence[Method]:
        """One method for each rpc of the service."""
        return ()
