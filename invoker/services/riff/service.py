"""`RiffService`: attaches riff to the gRPC door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from invoker.services.service import Service

if TYPE_CHECKING:
    from invoker.doors.grpc.methods import Method

__all__ = ["RiffService"]


class RiffService(Service):
    """riff's streaming calls."""

    name = "riff"
    on_grpc = True

    def grpc_methods(self) -> Sequence[Method]:
        """The method that invokes functions."""
        from invoker.services.riff.grpc import riff_method

        return (riff_method(),)
