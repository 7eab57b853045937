"""The Prometheus metrics of federated rounds (F-141).

In the numbers of a process, the name of a labelled number consists of its family and its labels, each encoded as in a
URL and separated by blanks. Labels are names of populations and tasks, and fixed words; none says anything about a
device (F-140). Names that are not in the file of rounds count as ``other``, so the number of labels is bounded.
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
"""By family: its labels and its description."""

GAUGES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "invoker_round_sessions": (("state",), "Devices that are connected, by what they wait for."),
    "invoker_round_held_bytes": ((), "Bytes of large messages and of reports that no function has taken yet."),
}
"""By family: its labels and its description."""

BOUNDS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
"""The upper bounds of the buckets for the durations of rounds, in seconds."""

OTHER: Final = "other"


def round_numbers(counts: Mapping[str, Mapping[tuple[str, ...], float]]) -> dict[str, float]:
    """Make counters or gauges, by name.

    Args:
        counts: By family, numbers by labels. `DURATION` has the labels population, task, and ``sum`` or a bound; the
            number of a bound is that of the rounds in its bucket.
    """
    return {_name(family, labels): number for family, rows in counts.items() for labels, number in rows.items()}


def round_families(numbers: Numbers) -> Iterator[Any]:
    """The Prometheus families for these numbers."""
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
