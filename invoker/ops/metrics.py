"""Metrics in the text format of Prometheus, made of the engine's counters when somebody asks.

Nothing is counted twice and nothing is locked: the engine adds up plain integers at each ending, and this module
reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from invoker.core.engine import Engine
from invoker.drive.driver import Driver

__all__ = ["Metrics"]


class Metrics:
    """A Prometheus collector over one engine and driver.

    Args:
        engine: Counts invocations, frames and bytes.
        driver: Knows the threads of sync functions.
    """

    def __init__(self, engine: Engine, driver: Driver) -> None:
        from prometheus_client import CollectorRegistry

        self._engine = engine
        self._driver = driver
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def render(self) -> tuple[str, bytes]:
        """The content type and the text, for ``GET /metrics``."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        return CONTENT_TYPE_LATEST, generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Give the families; Prometheus's own protocol."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counters, threads = self._engine.counters, self._driver.threads
        ended = CounterMetricFamily("invoker_invocations", "Invocations that ended, by status.", labels=["status"])
        for status, number in sorted(counters.finished.items()):
            ended.add_metric([status.name], number)
        yield ended
        for name, text, value in (
            ("invoker_refused_invocations", "Invocations that were refused when they opened.", counters.refused),
            ("invoker_frames_in", "Messages given to inputs.", counters.frames_in),
            ("invoker_frames_out", "Messages sent by outputs.", counters.frames_out),
            ("invoker_in_bytes", "Payload bytes given to inputs.", counters.bytes_in),
            ("invoker_out_bytes", "Payload bytes sent by outputs.", counters.bytes_out),
            ("invoker_invocation_seconds", "Time that invocations took, in all.", counters.seconds),
        ):
            yield CounterMetricFamily(name, text, value=value)
        for name, text, value in (
            ("invoker_running_invocations", "Invocations that run.", len(self._engine.running)),
            ("invoker_busy_threads", "Threads that run sync functions.", threads.busy),
            ("invoker_stuck_threads", "Threads whose invocation is over but whose function goes on.", threads.stuck),
            ("invoker_thread_slots", "Threads that sync functions may use.", threads.slots),
        ):
            yield GaugeMetricFamily(name, text, value=value)
