"""Makes metrics in the text format of Prometheus from the engine's counters, on request.

Nothing is counted twice and nothing is locked: the engine adds up plain integers at each ending, and this module reads
them. Each worker reports the metrics of all: it adds up the rows of all workers on the board
(`invoker.telemetry.board`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from invoker.telemetry.board import Numbers
from invoker.telemetry.logwriter import dropped_lines

if TYPE_CHECKING:
    from invoker.core.engine import Engine
    from invoker.execution.driver import Driver

Families: TypeAlias = Callable[[Numbers], Iterator[Any]]
"""Makes Prometheus metric families from the numbers that it recognises."""

_ENDED, _SESSIONS = "invoker_invocations", "invoker_sessions"
RESTARTS, RELOADS = "invoker_worker_restarts", "invoker_worker_reloads"
WORKERS, WANTED = "invoker_workers", "invoker_wanted_workers"

BY_STATUS = {
    _ENDED: "Invocations that ended, by status.",
    _SESSIONS: "Sessions that ended, by status.",
}
COUNTERS = {
    "invoker_refused_invocations": "Invocations that were refused when they opened.",
    "invoker_frames_in": "Messages given to inputs.",
    "invoker_frames_out": "Messages sent by outputs.",
    "invoker_in_bytes": "Payload bytes given to inputs.",
    "invoker_out_bytes": "Payload bytes sent by outputs.",
    "invoker_invocation_seconds": "Time that invocations took, in all.",
    "invoker_log_lines_dropped": "Lines of the log and of what functions print that were dropped, because their reader "
    "did not "
    "keep up.",
    RESTARTS: "Workers that were started because another had died or was killed.",
    RELOADS: "Workers that were started to take another's place on SIGHUP.",
}
GAUGES = {
    "invoker_running_invocations": "Invocations that run.",
    "invoker_running_sessions": "Sessions of many invocations that are open.",
    "invoker_busy_threads": "Threads that run sync functions.",
    "invoker_stuck_threads": "Threads whose invocation is over but whose function goes on.",
    "invoker_thread_slots": "Threads that sync functions may use.",
    WORKERS: "Workers that are ready and take new connections.",
    WANTED: "Workers that should be running.",
}


def numbers_of(engine: Engine, driver: Driver) -> Numbers:
    """The counts of this process so far."""
    counters, threads = engine.counters, driver.threads
    ended = {f"{_ENDED} {status.name}": float(number) for status, number in list(counters.finished.items())}
    sessions = driver.sessions
    ended |= {f"{_SESSIONS} {status.name}": float(number) for status, number in sessions.ended.items()}
    sums = {
        "invoker_refused_invocations": counters.refused,
        "invoker_frames_in": counters.frames_in,
        "invoker_frames_out": counters.frames_out,
        "invoker_in_bytes": counters.bytes_in,
        "invoker_out_bytes": counters.bytes_out,
        "invoker_invocation_seconds": counters.seconds,
        "invoker_log_lines_dropped": dropped_lines(),
    }
    gauges = {
        "invoker_running_invocations": len(engine.running),
        "invoker_running_sessions": sessions.running,
        "invoker_busy_threads": threads.busy,
        "invoker_stuck_threads": threads.stuck,
        "invoker_thread_slots": threads.slots,
    }
    return Numbers(ended | sums, dict(gauges))


class Metrics:
    """A Prometheus collector.

    Args:
        numbers: Returns the counts, by the names of this module and of the modules with further families.
        further: Returns the functions that make the families of the served protocols.
    """

    def __init__(self, numbers: Callable[[], Numbers], further: Callable[[], Sequence[Families]] = tuple) -> None:
        from prometheus_client import CollectorRegistry

        self._numbers, self._further = numbers, further
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def render(self) -> tuple[str, bytes]:
        """The content type and the text, for ``GET /metrics``."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        return CONTENT_TYPE_LATEST, generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Yield the metric families; called by Prometheus's library."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        numbers = self._numbers()
        for family, text in BY_STATUS.items():
            ended = CounterMetricFamily(family, text, labels=["status"])
            for name, number in sorted(numbers.counters.items()):
                kind, _, status = name.partition(" ")
                if kind == family:
                    ended.add_metric([status], number)
            yield ended
        for name, text in COUNTERS.items():
            if name in numbers.counters:
                yield CounterMetricFamily(name, text, value=numbers.counters[name])
        for name, text in GAUGES.items():
            if name in numbers.gauges:
                yield GaugeMetricFamily(name, text, value=numbers.gauges[name])
        for families in self._further():
            yield from families(numbers)
