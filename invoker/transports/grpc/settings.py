"""`GrpcSettings`: the settings of both gRPC transports, and the options of grpcio's server that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MOST = 2**31 - 1

UNCHECKED: Final = _MOST
"""A limit that no message reaches, for calls whose sessions check sizes themselves."""

COPIES: Final = 2
"""How many copies of a message exist while it is sent: ours, and the one that grpcio makes."""


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """The settings of a gRPC transport for connections and calls.

    Attributes:
        max_message_bytes: Largest inbound message of methods that declare no other limit; a larger one fails its call
            with RESOURCE_EXHAUSTED (R-121).
        max_streams: How many calls one connection may have open at once; its client queues further calls.
        settle_s: Seconds between the end of the request stream and the end of the inputs, for peers that need it
            (R-109).
        share_port: Whether other processes may bind the same port.
        connection_age_s: Clients are asked to reconnect after this time, a tenth more or less; 0 means never.
        keepalive_s: A connection that has been silent for this many seconds is sent a ping.
        keepalive_timeout_s: Without an answer within this many seconds after the ping, the connection is closed, and
            its calls are cancelled.
        idle_s: A connection that has had no call for this long is closed; its client reconnects for the next call.
        ping_s: Clients may send pings as often as this, also while they have no call (T-163).
        window_bytes: The bytes that a peer may send on one call, and on one connection, before they are acknowledged;
            grpcio may hold this many bytes of each call, which no budget counts.
    """

    max_message_bytes: int = 4 * 1024 * 1024
    max_streams: int = 10_000
    settle_s: float = 0.01
    share_port: bool = False
    connection_age_s: float = 0.0
    keepalive_s: float = 60.0
    keepalive_timeout_s: float = 20.0
    idle_s: float = 300.0
    ping_s: float = 10.0
    window_bytes: int = 1024 * 1024

    def options(self, largest_bytes: int = 0) -> list[tuple[str, int]]:
        """Arguments of grpcio's server.

        Args:
            largest_bytes: Largest inbound message of any method, if that is more; grpcio has one limit for all.
        """
        return [
            ("grpc.so_reuseport", int(self.share_port)),  # two servers must not share a port by accident
            ("grpc.max_receive_message_length", max(self.max_message_bytes, largest_bytes)),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", self.max_streams),
            # grpcio's own windows are at least 4 MiB for each call, and grow without a bound if its probe estimates
            # that more is in flight, as it does when a process reads slowly.
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", self.window_bytes),
            ("grpc.max_connection_age_ms", int(self.connection_age_s * 1000) or _MOST),
            # grpcio refuses calls beyond these with status 1 CANCELLED, which clients take for their own cancel. The
            # invoker's own refusals are RESOURCE_EXHAUSTED, so every call has to reach it.
            ("grpc.server.max_pending_requests", _MOST),
            ("grpc.server.max_pending_requests_hard_limit", _MOST),
            ("grpc.keepalive_time_ms", int(self.keepalive_s * 1000)),
            ("grpc.keepalive_timeout_ms", int(self.keepalive_timeout_s * 1000)),
            ("grpc.http2.ping_timeout_ms", int(self.keepalive_timeout_s * 1000)),  # the default is a minute
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.max_connection_idle_ms", int(self.idle_s * 1000)),
            # grpcio's default is five minutes, and would close the connections of clients that follow the tool bridge's
            # protocol.
            ("grpc.http2.min_ping_interval_without_data_ms", int(self.ping_s * 1000)),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", int(self.ping_s * 1000)),
        ]
