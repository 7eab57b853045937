"""`RiffService` and `RiffHttpService`: attach riff to the gRPC door, and its request and reply to the HTTP door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from invoker.services.service import Service

if TYPE_CHECKING:
    from invoker.author.spec import FunctionSpec
    from invoker.config import Config
    from invoker.doors.grpc.methods import Method
    from invoker.doors.http.app import Front, SocketFront
    from invoker.services.riff.sockets import Sockets

__all__ = ["RiffHttpService", "RiffService"]


class RiffService(Service):
    """riff's streaming calls."""

    name = "riff"
    on_grpc = True

    def grpc_methods(self) -> Sequence[Method]:
        """The method that invokes functions."""
        from invoker.services.riff.grpc import riff_method

        return (riff_method(),)

    def add_servicers(self, server: Any, names: Sequence[str]) -> None:  # noqa: ARG002 - it describes functions
        """What tells callers of the functions."""
        if self.around.config.reflection:
            from invoker.ops.describe import add_describe

            add_describe(self.around.driver.engine.catalog, server)

    def sample(self, spec: FunctionSpec, address: str, *, is_one: bool) -> str:
        """A call with a value for each input."""
        from invoker.ops.samples import call_command

        return call_command(spec, address, is_one=is_one)


class RiffHttpService(Service):
    """riff's HTTP twin: a request is an invocation. It answers every path that no other service claims."""

    name = "http"
    on_http = True
    _front: Front | None = None
    _no_socket: Front | None = None
    _sockets: Sockets | None = None

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:  # noqa: ARG003 - as `Service`
        """On the HTTP door only."""
        return is_chosen and has_http

    async def start(self) -> None:
        """Read the functions' signatures, so that the first request need not wait for that."""
        from invoker.doors.http.app import SocketSettings
        from invoker.services.riff.http import RiffFront
        from invoker.services.riff.sockets import NoSocketFront, Sockets

        config = self.around.config
        most_bytes = min(config.max_message_bytes, self.around.driver.engine.limits.hard_bytes)
        self._sockets, self._no_socket = Sockets(self.around.driver, SocketSettings(most_bytes)), NoSocketFront()
        self._front = RiffFront(
            self.around.driver,
            max_body_bytes=config.max_message_bytes,
            timeout_s=config.http_timeout_s or None,
            settle_s=config.settle_s,
            ignores_unknown=config.http_ignore_unknown,
        )

    def http_front(self, path: str) -> Front | None:
        """Who answers any path."""
        return self._no_socket if self.socket_front(path) is not None else self._front

    def socket_front(self, path: str) -> SocketFront | None:
        """The function of this path."""
        return None if self._sockets is None else self._sockets.front(path)
