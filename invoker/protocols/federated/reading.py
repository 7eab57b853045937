"""Parses clients' messages into checkins and reports for the coordinator.

Every invalid message is INVALID_ARGUMENT. ``internal_client_id`` is never read (F-010).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import DecodeError

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import Status, StatusError
from invoker.message import Headers
from invoker.protocols.federated.fields import has_more_fields
from invoker.protocols.federated.messages import Checkin, ReportIn
from invoker.protocols.federated.negotiation import DeviceSettings, capabilities
from invoker.protocols.federated.wire.durations import seconds_of
from invoker.protocols.federated.wire.names import WEIGHTS_VERSION

AnyCheckin: TypeAlias = pb.CheckinRequest | pb.EligibilityEvalCheckinRequest

_FIELDS: Final = 65_536
"""How many fields a message may have. A message with shares has the most: two for each device of the round."""
_STATS: Final = pb.ClientExecutionStats.DESCRIPTOR.full_name


def invalid(text: str) -> StatusError:
    """The error for a client that breaks the protocol: INVALID_ARGUMENT, which clients treat as permanent."""
    return StatusError(Status.INVALID_ARGUMENT, text)


def parsed(frame: bytes | bytearray) -> pb.ClientStreamMessage:
    """Parse a message.

    Raises:
        StatusError: The bytes are not a valid message, or the message has so many fields that it would take a hundred
            times its size in memory.
    """
    if has_more_fields(frame, pb.ClientStreamMessage.DESCRIPTOR, _FIELDS):
        raise invalid(f"a message has more than {_FIELDS} fields")
    try:
        return pb.ClientStreamMessage.FromString(frame)  # type: ignore[arg-type]  # the stub declares bytes only
    except DecodeError:
        raise invalid("the bytes are not a valid ClientStreamMessage") from None


def checkin_of(request: AnyCheckin, metadata: Headers) -> Checkin:
    """Read a checkin of either kind.

    Raises:
        StatusError: A weight is invalid, or a task has two (F-044).
    """
    weights, version = None, WEIGHTS_VERSION
    if isinstance(request, pb.CheckinRequest) and request.HasField("task_eligibility_info"):
        info = request.task_eligibility_info
        version = info.version
        # F-045: weights of another version have an unknown meaning, so they are not checked
        weights = _weights(info.task_weights) if version == WEIGHTS_VERSION else {}
    return Checkin(
        population=request.population_name,
        retry_token=request.retry_token,
        attestation=request.attestation_measurement,
        client_version=request.client_version,
        can=capabilities(request.protocol_options_request),
        weights=weights,
        weights_version=version,
        metadata=metadata,
    )


def check_same(first: Checkin, second: Checkin) -> None:
    """Check that a client's second checkin has the same identity as the first.

    Raises:
        StatusError: The identities differ (F-009).
    """
    for name in ("population", "retry_token", "attestation", "client_version"):
        if getattr(first, name) != getattr(second, name):
            raise invalid(f"the {name.replace('_', ' ')} of the second checkin differs from that of the first")


def report_of(request: pb.ReportRequest, settings: DeviceSettings) -> ReportIn:
    """Read a report.

    Raises:
        StatusError: The report has too many events, or too large ones (F-064).
    """
    report = request.report
    events = report.serialized_train_event
    if len(events) > settings.events:
        raise invalid(f"a report has {len(events)} train events and exceeds the limit of {settings.events}")
    size = sum(one.ByteSize() for one in events)
    if size > settings.event_bytes:
        raise invalid(f"train events of {size} bytes exceed the limit of {settings.event_bytes} bytes a report")
    # A number that is not in google.rpc.Code counts as UNKNOWN.
    status = report.status_code if 0 <= report.status_code <= max(Status) else Status.UNKNOWN
    return ReportIn(report.update_checkpoint, int(status), _duration(events))


def _weights(said: Iterable[pb.TaskWeight]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for one in said:
        if one.task_name in weights:
            raise invalid(f"the task {one.task_name!a} has two weights")
        if not math.isfinite(one.weight) or one.weight <= 0:
            raise invalid(f"the weight of the task {one.task_name!a} is {one.weight}; it must be above 0, and finite")
        weights[one.task_name] = one.weight
    return weights


def _duration(events: Iterable[Packed]) -> float | None:
    """How many seconds the plan ran, if the client sends a valid duration (F-062)."""
    for one in events:
        if one.type_url.rpartition("/")[2] != _STATS:
            continue
        try:
            stats = pb.ClientExecutionStats.FromString(one.value)
        except DecodeError:
            continue
        duration = stats.duration
        if stats.HasField("duration") and duration.seconds >= 0 and duration.nanos >= 0:
            return seconds_of(duration)
    return None
