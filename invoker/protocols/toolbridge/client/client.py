"""`ToolBridge`: a client that calls the tools of any server of the gRPC service ``dspex.bridge``.

::

    async with ToolBridge("127.0.0.1:8081") as bridge, bridge.session() as session:
        print(await session.call("add", 1, b=2))
        async for value in session.stream("count", 3):
            print(value)
        await session.variables.set("limit", 10)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Self

from google.protobuf.timestamp_pb2 import Timestamp

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.connect.tls import Tls
from invoker.message import EMPTY
from invoker.protocols.toolbridge.client.answers import Health, Histogram, health_in, metric_in
from invoker.protocols.toolbridge.client.link import Link
from invoker.protocols.toolbridge.client.session import SessionOptions, ToolSession

MAX_OUTPUT_BYTES = 64 << 20
RETRY_WAITS_S = (1.0, 2.0, 4.0)


class ToolBridge:
    """A connection to one bridge, made on first use and again after it was lost.

    Args:
        target: ``host:port``, or any name that gRPC understands (``unix:/path``, ``dns:///name:port``).
        tls: The TLS settings of the connection; None: plain text.
        metadata: Sent with every rpc.
        max_output_bytes: The largest answer, and the largest chunk of a stream, that is received.
        retry_waits_s: The waits in seconds before each retry of a call that has a ``request_id``; empty: there are no
            retries.

    Proxies from environment variables are ignored, since bridges are on the same network. All methods must be called on
    the same event loop.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | None = None,
        metadata: Mapping[str, str | bytes] = EMPTY,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        retry_waits_s: Sequence[float] = RETRY_WAITS_S,
    ) -> None:
        self.target = target
        self._tls = tls
        self._metadata = metadata
        self._max_output_bytes = max_output_bytes
        self._retry_waits_s = retry_waits_s
        self._made: Link | None = None

    async def __aenter__(self) -> Self:
        if self._made is None:
            self._made = Link(
                self.target,
                tls=self._tls,
                metadata=self._metadata,
                max_output_bytes=self._max_output_bytes,
                retry_waits_s=self._retry_waits_s,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def session(
        self,
        session_id: str = "",
        *,
        callback_address: str = "",
        metadata: Mapping[str, str] = EMPTY,
        max_concurrent_tools: int = 0,
        default_timeout_s: float = 0.0,
        caching: bool = False,
        telemetry: bool = False,
        keep: bool = False,
    ) -> ToolSession:
        """A session of the bridge, which ``async with`` makes and cleans up.

        Args:
            session_id: The id of the session; empty: a random one. A session with this id and the same options is used
                again.
            callback_address: The address at which this program serves the same service, so that the bridge can call its
                tools.
            metadata: Data that the bridge keeps with the session.
            max_concurrent_tools: How many tools may run in it at once; 0: the bridge's default.
            default_timeout_s: The time limit in seconds of calls without their own; 0: the bridge's default.
            caching: Whether a repeated ``request_id`` is answered from memory.
            telemetry: Whether the bridge counts the calls of this session separately.
            keep: Whether the session is kept at the end of the block; the bridge drops it some time after the last
                call.

        Raises:
            RuntimeError: The client is not open.
        """
        options = SessionOptions(
            callback_address=callback_address,
            metadata=metadata,
            max_concurrent_tools=max_concurrent_tools,
            default_timeout_s=default_timeout_s,
            caching=caching,
            telemetry=telemetry,
        )
        return ToolSession(self._link, session_id, options, is_kept=keep)

    async def health(self, service: str = "") -> Health:
        """Ask for the health of the bridge or of one service: ``tools``, ``sessions``, ``variables`` or ``agents``.

        Raises:
            ToolCommunicationError: NOT_FOUND: there is no such service.
        """
        request = pb.HealthCheckRequest(service=service)
        return health_in(await self._link.ask("HealthCheck", request, pb.HealthCheckResponse))

    async def metrics(
        self, *names: str, start: datetime | None = None, end: datetime | None = None
    ) -> dict[str, int | float | str | Histogram]:
        """Ask for the metrics of the bridge.

        Args:
            names: The names of the metrics; none: all. Unknown ones are left out.
            start: Counts from this time on, within the last hour; a time without a zone is in UTC.
            end: Counts up to this time.
        """
        request = pb.GetMetricsRequest(metric_names=names, start_time=_stamp(start), end_time=_stamp(end))
        answer = await self._link.ask("GetMetrics", request, pb.MetricsResponse)
        return {name: metric_in(value) for name, value in answer.metrics.items()}

    async def close(self) -> None:
        """Cancel the running calls and close the connection. Idempotent."""
        link, self._made = self._made, None
        if link is not None:
            await link.close()

    @property
    def _link(self) -> Link:
        if self._made is None:
            raise RuntimeError("the client is not open; use it as `async with ToolBridge(...) as bridge:`")
        return self._made


def _stamp(at: datetime | None) -> Timestamp | None:
    if at is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp
