"""The responses of a bridge, as plain Python objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.client.failure import ToolExecutionError, failed
from invoker.protocols.toolbridge.client.values import read


@dataclass(frozen=True, slots=True)
class Metrics:
    """The time and memory of a call, as the bridge measured them."""

    duration_ms: int = 0
    cpu_time_ms: int = 0
    memory_bytes: int = 0
    custom: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The complete answer to a call that succeeded."""

    value: Any
    request_id: str
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a batch: its value, or its error.

    Attributes:
        index: The index of the call.
    """

    index: int
    value: Any
    error: ToolExecutionError | None
    metrics: Metrics

    def unwrap(self) -> Any:
        """The value of the item, if it has one.

        Raises:
            ToolExecutionError: The call failed.
        """
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True, slots=True)
class Batch:
    """The answer to a batch; a call that was not started, because another one had failed, has no item.

    Attributes:
        items: The items in the order of the calls.
        duration_ms: How long the whole batch took.
        average_ms: How long the calls that ran took on average.
    """

    id: str
    items: tuple[Item, ...]
    total: int
    succeeded: int
    failed: int
    duration_ms: int
    average_ms: float

    def values(self) -> list[Any]:
        """The values of all items.

        Raises:
            ToolExecutionError: A call failed; this is the error of the first one.
        """
        return [item.unwrap() for item in self.items]


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What the bridge reports about a session."""

    id: str
    created_at: datetime
    last_activity: datetime
    tool_count: int
    variable_count: int
    active_operations: int
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a service and of each dependency: ``SERVING``, ``NOT_SERVING`` or ``UNKNOWN``."""

    status: str
    dependencies: Mapping[str, str]

    @property
    def is_serving(self) -> bool:
        """Whether the service takes calls: its status is ``SERVING``."""
        return self.status == "SERVING"


@dataclass(frozen=True, slots=True)
class Histogram:
    """A metric that counts values by their range.

    Attributes:
        buckets: Pairs of an upper bound and the number of values up to this bound, ascending; the last bound is
            infinite.
    """

    buckets: tuple[tuple[float, int], ...]
    count: int
    sum: float


def when(stamp: Timestamp) -> datetime:
    """Convert a time to a datetime in UTC; fractions of a microsecond are dropped."""
    return stamp.ToDatetime(tzinfo=UTC)


def metrics_in(sent: pb.ExecutionMetrics) -> Metrics:
    """Convert the metrics of a call."""
    return Metrics(sent.duration_ms, sent.cpu_time_ms, sent.memory_bytes, dict(sent.custom_metrics))


def result_in(tool: str, sent: pb.ToolCallResponse) -> ToolResult:
    """Convert the answer to a call.

    Raises:
        ToolExecutionError: The call failed.
    """
    if not sent.success:
        raise failed(tool, sent.error)
    return ToolResult(read(sent.result), sent.request_id, metrics_in(sent.metrics))


def batch_in(tools: Mapping[int, str], sent: pb.BatchToolCallResponse) -> Batch:
    """Convert the answer to a batch.

    Args:
        tools: The tools of the calls, by index.
        sent: The message of the bridge.
    """
    total = sent.metrics
    return Batch(
        id=sent.batch_id,
        items=tuple(_item(tools.get(one.index, ""), one) for one in sent.results),
        total=total.total_items,
        succeeded=total.successful_items,
        failed=total.failed_items,
        duration_ms=total.total_duration_ms,
        average_ms=total.avg_duration_ms,
    )


def info_in(sent: pb.SessionInfo) -> SessionInfo:
    """Convert the data of a session."""
    return SessionInfo(
        id=sent.session_id,
        created_at=when(sent.created_at),
        last_activity=when(sent.last_activity),
        tool_count=sent.tool_count,
        variable_count=sent.variable_count,
        active_operations=sent.active_operations,
        metadata=dict(sent.metadata),
    )


def health_in(sent: pb.HealthCheckResponse) -> Health:
    """Convert the health of a service and its dependencies."""
    return Health(_serving(sent.status), {name: _serving(status) for name, status in sent.dependencies.items()})


def metric_in(sent: pb.MetricValue) -> int | float | str | Histogram:
    """Convert the value of one metric."""
    match sent.WhichOneof("value"):
        case "integer_value":
            return sent.integer_value
        case "double_value":
            return sent.double_value
        case "histogram":
            of = sent.histogram
            return Histogram(tuple((one.upper_bound, one.count) for one in of.buckets), of.count, of.sum)
        case _:
            return sent.string_value


def _item(tool: str, sent: pb.ToolCallResult) -> Item:
    took = metrics_in(sent.metrics)
    if sent.success:
        return Item(sent.index, read(sent.result), None, took)
    return Item(sent.index, None, failed(tool, sent.error), took)


def _serving(number: int) -> str:
    statuses = pb.HealthCheckResponse.ServingStatus
    return statuses.Name(number) if number in statuses.values() else str(number)
