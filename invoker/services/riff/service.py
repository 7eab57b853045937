"""`RiffService` and `RiffHttpService`: attach riff to the gRPC door, and its request and reply to the HTTP door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from invoker.services.service import Service

if TYPE_CHECKING:
    from invoker.author.spec import FunctionSpec
    from invoker.doors.grpc.methods import Method
    from invoker.doors.http.app import Front

__all__ = ["RiffHttpService", "RiffService"]


class RiffService(Service):
    """riff's streaming calls."""

    name = "riff"
    on_grpc = True

    def grpc_methods(self) -> Sequence[Method]:
        """The method that invokes functions."""
        from invoker.services.riff.grpc import riff_method

        return (riff_method(),)

    def sample(self, spec: FunctionSpec, address: str, *, is_one: bool) -> str:
        """A call with a value for each input."""
        from invoker.ops.samples import call_command

        return call_command(spec, address, is_one=is_one)


class RiffHttpService(Service):
    """riff's HTTP twin: a request is an invocation. It answers every path that no other service claims."""

    name = "http"
    on_http = True
    _front: Front | None = None

    def http_front(self, path: str) -> Front:  # noqa: ARG002 - whatever the path is
        """Who answers any path."""
        if self._front is None:
            from invoker.services.riff.http import RiffFront

            config = self.around.config
            self._front = RiffFront(
                self.around.driver,
                max_body_bytes=config.max_message_bytes,
                timeout_s=config.http_timeout_s or None,
            )
        return self._front
