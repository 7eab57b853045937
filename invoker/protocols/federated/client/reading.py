"""Parses a server's messages into plain values."""

from __future__ import annotations

from typing import Any, Final

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import Status, StatusError
from invoker.protocols.federated.client.downloads import Source
from invoker.protocols.federated.client.messages import SecAggTask
from invoker.protocols.federated.wire.durations import seconds_of

_MOST_BITS: Final = 62


def parsed(data: Any) -> pb.ServerStreamMessage:
    """Parse a message.

    Raises:
        StatusError: The bytes are not a valid message.
    """
    try:
        return pb.ServerStreamMessage.FromString(bytes(data))
    except Exception as error:  # protobuf's DecodeError is in a different module in each implementation
        raise StatusError(Status.INTERNAL, f"{len(data)} bytes are not a valid ServerStreamMessage") from error


def source_of(message: Any, name: str) -> Source:
    """The source of a plan or a checkpoint: its bytes or its URI; without either it is empty (F-068)."""
    kind = message.WhichOneof(f"{name}_type")
    if kind != f"{name}_resource":
        return Source(getattr(message, name))
    resource = getattr(message, kind)
    return Source(b"", resource.uri, resource.client_cache_id, seconds_of(resource.max_age))


def terms_of(info: pb.AcceptanceInfo) -> SecAggTask:
    """The terms of secure aggregation in an acceptance (F-089, F-090).

    Raises:
        StatusError: A modulus is less than 2 or more than 2^62.
    """
    moduli = {}
    for name, side in info.side_channels.items():
        said = side.secure_aggregand
        moduli[name] = said.modulus or (1 << said.output_bitwidth if 0 < said.output_bitwidth <= _MOST_BITS else 0)
        if not 1 < moduli[name] <= 1 << _MOST_BITS:
            raise StatusError(Status.INTERNAL, f"the modulus {said.modulus} of vector {name[:40]!r} is not possible")
    protocol = info.side_channel_protocol_execution_info.secure_aggregation
    return SecAggTask(
        moduli,
        protocol.expected_number_of_clients,
        protocol.minimum_surviving_clients_for_reconstruction,
        protocol.minimum_clients_in_server_visible_aggregate,
    )
