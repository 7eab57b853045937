"""`HealthCheck`: reports whether the bridge takes calls, and the state of its dependencies (T-150 to T-153)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.steps import Step
from invoker.errors import Status
from invoker.message import EMPTY, Headers
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.host_sessions import HostSessions
from invoker.protocols.toolbridge.unary import UnarySession

Dependencies: TypeAlias = Callable[[], Mapping[str, bool | None]]
"""The dependencies of the bridge by name, and whether each works; None: that is not known yet."""

_SERVICES: Final = frozenset({"", "dspex.bridge.SnakepitBridge", "tools", "sessions", "variables", "agents"})
_STATUS: Final = {
    True: pb.HealthCheckResponse.SERVING,
    False: pb.HealthCheckResponse.NOT_SERVING,
    None: pb.HealthCheckResponse.UNKNOWN,
}


class HealthCheck(UnarySession[pb.HealthCheckRequest]):
    """Reports the health of the bridge, or of one of its services.

    Args:
        host_sessions: The host sessions.
        metadata: The metadata of the rpc.
        serves: Returns whether this process takes calls.
        dependencies: Returns the dependencies, and whether each works.
        critical: Names of the dependencies without which the bridge is not serving; ``callback`` stands for the
            addresses of all hosts.
    """

    reads: ClassVar[type[Any]] = pb.HealthCheckRequest
    answers: ClassVar[type[Any]] = pb.HealthCheckResponse

    def __init__(
        self,
        host_sessions: HostSessions,
        metadata: Headers = EMPTY,
        *,
        serves: Callable[[], bool],
        dependencies: Dependencies,
        critical: Sequence[str] = (),
    ) -> None:
        super().__init__(host_sessions, metadata)
        self._serves = serves
        self._dependencies = dependencies
        self._critical = frozenset(critical)

    def asked(self, request: pb.HealthCheckRequest) -> Sequence[Step]:
        """Send the health of the service that the request names."""
        if request.service not in _SERVICES:
            known = ", ".join(sorted(_SERVICES - {""}))
            error = BridgeError(
                Kind.VALIDATION,
                f"there is no service {request.service!r}; known are {known}, and the empty name for all of them",
                code="unknown_service", field="service",
            )  # fmt: skip
            error.status = Status.NOT_FOUND
            raise error
        found = self._dependencies()
        is_broken = any(
            is_well is False and (name in self._critical or name.partition(":")[0] in self._critical)
            for name, is_well in found.items()
        )
        made = pb.HealthCheckResponse(status=_STATUS[self._serves() and not is_broken])
        for name, is_well in found.items():
            made.dependencies[name] = _STATUS[is_well]
        return self.reply(made)
