"""`GetMetrics`: reports metrics of tools and host sessions (T-154 to T-158).

Without a time in the request, the numbers are those of all workers, as in ``/metrics``. With a time they are those of
this process only, since each process keeps its own minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.steps import Step
from invoker.message import EMPTY, Headers
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.host_sessions import HostSessions
from invoker.protocols.toolbridge.tally import BOUNDS_MS, TOTALS, Histogram, Minute, Tally
from invoker.protocols.toolbridge.unary import UnarySession

Gauges: TypeAlias = Callable[[], Mapping[str, int]]
"""Returns the current gauges by name: ``sessions.active``, ``tool.<id>.active``, ``tool.<id>.zombies``,
``audit.errors``."""

_MINUTE_S: Final = 60
_NAMES: Final = 10_000
"""How many metrics a request may name."""


class GetMetrics(UnarySession[pb.GetMetricsRequest]):
    """Reads metrics by name.

    Args:
        host_sessions: The host sessions.
        metadata: The metadata of the rpc.
        tally: The counts of this process.
        total: Returns the counts of all workers; None: those of ``tally`` are used.
        gauges: Returns the current values of the gauges.
        tells: Whether callers may see the names of the tools; otherwise the metrics of a tool are sent only if the
            request names them.
    """

    reads: ClassVar[type[Any]] = pb.GetMetricsRequest
    answers: ClassVar[type[Any]] = pb.MetricsResponse

    def __init__(
        self,
        host_sessions: HostSessions,
        metadata: Headers = EMPTY,
        *,
        tally: Tally,
        gauges: Gauges,
        total: Callable[[], Minute] | None = None,
        tells: bool = True,
    ) -> None:
        super().__init__(host_sessions, metadata)
        self._hidden = () if tells else ("tool.",)
        self._tally = tally
        self._total = total or tally.total
        self._gauges = gauges

    def asked(self, request: pb.GetMetricsRequest) -> Sequence[Step]:
        """Send the requested metrics, or all if none is named; unknown names are left out."""
        first = request.start_time.seconds if request.HasField("start_time") else None
        last = request.end_time.seconds if request.HasField("end_time") else None
        if first is not None and last is not None and first > last:
            raise BridgeError(
                Kind.VALIDATION,
                f"start_time ({first} s) is later than end_time ({last} s)",
                code="range", field="start_time",
            )  # fmt: skip
        if len(request.metric_names) > _NAMES:
            text = f"{len(request.metric_names)} metrics exceed the limit of {_NAMES}; no name means all metrics"
            raise BridgeError(Kind.VALIDATION, text, code="range", field="metric_names")
        known = values_of(self._counted(first, last), self._gauges_of(first, last))
        if first is not None or last is not None:  # names that are known now are reported with 0, too
            known = {name: _zero(value) for name, value in values_of(self._total(), {}).items()} | known
        wanted = set(request.metric_names)
        made = pb.MetricsResponse()
        for name, value in known.items():
            if name in wanted or (not wanted and not name.startswith(self._hidden)):
                _put(made.metrics[name], value)
        return self.reply(made)

    def _counted(self, first: int | None, last: int | None) -> Minute:
        if first is None and last is None:
            return self._total()
        return self._tally.between(*(None if one is None else one // _MINUTE_S for one in (first, last)))

    def _gauges_of(self, first: int | None, last: int | None) -> Mapping[str, int]:
        """The current values of the gauges; 0 if the requested time has passed."""
        gauges, now = self._gauges(), self._tally.now
        is_now = (first is None or first // _MINUTE_S <= now) and (last is None or last // _MINUTE_S >= now)
        return gauges if is_now else dict.fromkeys(gauges, 0)


def values_of(minute: Minute, gauges: Mapping[str, int]) -> dict[str, int | Histogram]:
    """All metrics of a span of time and all gauges, by name (T-155)."""
    made: dict[str, int | Histogram] = {name: minute.counts[name] for name in TOTALS}
    for (tool, outcome), count in minute.outcomes.items():
        name = f"tool.{tool}.calls"
        made[name] = made.get(name, 0) + count  # type: ignore[operator]  # names of calls have numbers
        if outcome != "ok":
            made[f"tool.{tool}.errors.{outcome}"] = count
    for tool, histogram in minute.durations.items():
        made[f"tool.{tool}.duration_ms"] = histogram
    for (session, is_error), count in minute.sessions.items():
        name = f"session.{session}.calls"
        made[name] = made.get(name, 0) + count  # type: ignore[operator]  # as above
        if is_error:
            made[f"session.{session}.errors"] = count
    made.update(gauges)
    return made


def _zero(value: int | Histogram) -> int | Histogram:
    return 0 if isinstance(value, int) else Histogram()


def _put(made: pb.MetricValue, value: int | Histogram) -> None:
    if isinstance(value, int):
        made.integer_value = value
        return
    told, counts = made.histogram, value.cumulative
    for bound, count in zip((*BOUNDS_MS, float("inf")), counts, strict=True):
        told.buckets.add(upper_bound=bound, count=count)
    told.count = counts[-1]
    told.sum = value.sum_ms
