"""The Prometheus metrics of federated rounds (F-141).

Among the numbers of a process a labelled one is named by its family and its labels, each as in a URL, with blanks
between them. Labels are names of populations and tasks, and short words; none says anything about a device (F-140).
Only populations and tasks of the file are labels, so their number is bounded; other names from devices count as
``other``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

from invoker.telemetry.board import Numbers

DURATION: Final = "invoker_round_duration_seconds"

COUNTERS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "invoker_rounds": (("population", "task", "outcome"), "Rounds that ended: `committed` or `failed`."),
    "invoker_round_accepted": (("population", "task"), "Devices that were taken into a round."),
    "invoker_round_rejected": (("population", "reason"), "Devices that were not taken into a round."),
    "invoker_round_dropped": (("state",), "Devices that left before they had an answer, by what they waited for."),
    "invoker_round_reports": (
        ("population", "task", "outcome"),
        "What became of devices of a round: `ok`, `failed`, `invalid`, `late`, `dropped` or `cut`.",
    ),
    "invoker_round_selections": (("population", "task", "outcome"), "Selections: `begun`, or `too_few` had come."),
    "invoker_round_secagg_dropped": (
        ("population", "task", "round", "reason"),
        "Devices that secure aggregation has excluded or lost (`connection_closed`), by its round, 0 to 3.",
    ),
    "invoker_round_chunk_bytes": (("direction",), "Bytes of the chunk layer: `sent` to devices, and `received`."),
}
"""By family: its labels and its help text."""

GAUGES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "invoker_round_sessions": (("state",), "Devices that are connected, by what they wait for."),
    "invoker_round_held_bytes": ((), "Bytes of large messages and of reports that no function has taken yet."),
}
"""By family: its labels and its help text."""

BOUNDS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
"""Seconds; the buckets of how long rounds took."""

OTHER: Final = "other"


def round_numbers(counts: Mapping[str, Mapping[tuple[str, ...], float]]) -> dict[str, float]:
    """Counters or gauges by name.

    Args:
        counts: By family, numbers by labels. `DURATION` has the labels population, task, and ``sum`` or a bound; a
            bound counts the rounds that took at most that long, and longer than the bound before.
    """
    return {_name(family, labels): number for family, rows in counts.items() for labels, number in rows.items()}


def round_families(numbers: Numbers) -> Iterator[Any]:
    """The Prometheus families of the numbers that exist."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    for known, found, kind in (
        (COUNTERS, numbers.counters, CounterMetricFamily),
        (GAUGES, numbers.gauges, GaugeMetricFamily),
    ):
        for family, (labels, text) in known.items():
            if rows := _rows(family, found):
                made = kind(family, text, labels=labels)
                for values, number in rows:
                    made.add_metric(values, number)
                yield made
    parts: dict[tuple[str, ...], dict[str, float]] = {}
    for (*task, bound), number in _rows(DURATION, numbers.counters):
        parts.setdefault(tuple(task), {})[bound] = number
    durations = HistogramMetricFamily(DURATION, "How long rounds took.", labels=["population", "task"])
    for labels, bounds in parts.items():
        seconds, total, buckets = bounds.pop("sum", 0.0), 0.0, []
        for bound in (*(f"{one:g}" for one in BOUNDS), "+Inf"):
            total += bounds.get(bound, 0.0)
            buckets.append((bound, total))
        durations.add_metric(labels, buckets, seconds)
    if parts:
        yield durations


def _name(family: str, labels: Sequence[str]) -> str:
    return " ".join((family, *(quote(one, safe="") for one in labels)))


def _rows(family: str, numbers: Mapping[str, float]) -> list[tuple[tuple[str, ...], float]]:
    rows = []
    for name, number in sorted(numbers.items()):
        kind, *labels = name.split(" ")
        if kind == family:
            rows.append((tuple(unquote(one) for one in labels), number))
    return rows
