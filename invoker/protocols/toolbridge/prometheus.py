"""The Prometheus metrics of the tool bridge.

In the numbers of a process, the name of a labelled counter consists of its family and its labels, separated by blanks.
The id of a tool may contain blanks; an outcome or a bucket does not. Workers share a board with a fixed number of rows,
so of tens of thousands of tools only the first ones of the catalogue have their own rows; all others are counted as
``other``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from invoker.telemetry.board import Numbers

CALLS: Final = "invoker_tool_calls"
DURATION: Final = "invoker_tool_duration_seconds"

COUNTERS: Final = {
    "invoker_tool_sessions_created": "Sessions of the tool bridge that were made.",
    "invoker_tool_sessions_expired": "Sessions of the tool bridge that expired.",
    "invoker_tool_stream_chunks": "Data chunks of streamed tool calls.",
    "invoker_tool_batch_items": "Items of batches that were executed.",
    "invoker_tool_cache_hits": "Tool calls that were answered from the result of an earlier one.",
    "invoker_tool_rate_limited": "Tool calls that were refused by a limit of calls in a minute.",
    "invoker_tool_messages_too_large": "Requests of the tool bridge that were refused for their size.",
    "invoker_audit_errors": "Lines of the audit log that were lost.",
}
GAUGES: Final = {
    "invoker_tool_sessions": "Sessions of the tool bridge that are open.",
    "invoker_tool_running_calls": "Tool calls that run.",
    "invoker_tool_zombies": "Calls that have ended, but whose function goes on.",
}
LABELLED: Final = {
    f'{CALLS}_total{{tool="mymod:fn",outcome="ok"}}': "Tool calls that ended, by tool and outcome: `ok` or an error.",
    f'{DURATION}_bucket{{tool="mymod:fn",le="0.1"}}': "How long tool calls took: a histogram.",
}
"""The gauges and their descriptions, for the reference page."""

OTHER: Final = "other"
_MOST_BYTES: Final = 32 * 1024 * 1024
_ENTRY_BYTES: Final = 56
_ENTRIES: Final = 26
"""How many rows one tool needs: for outcomes, buckets, the sum and the gauges."""


def tool_numbers(
    tools: Iterable[str],
    outcomes: Mapping[tuple[str, str], int],
    durations: Mapping[str, tuple[Iterable[tuple[str, int]], float]],
) -> dict[str, float]:
    """Make the counters of tools, by name.

    Args:
        tools: All tools, in the same order in every worker.
        outcomes: Calls by tool and outcome.
        durations: For each tool the number of calls in each bucket, whose bounds are in seconds, and the total time of
            the calls in seconds.
    """
    named = _named(tools)
    made: dict[str, float] = {}
    for (tool, outcome), count in outcomes.items():
        _add(made, f"{CALLS} {named.get(tool, OTHER)} {outcome}", count)
    for tool, (buckets, seconds) in durations.items():
        _add(made, f"{DURATION} {named.get(tool, OTHER)} sum", seconds)
        for bound, count in buckets:
            if count:
                _add(made, f"{DURATION} {named.get(tool, OTHER)} {bound}", count)
    return made


def tool_gauges(tools: Iterable[str], family: str, running: Mapping[str, int]) -> dict[str, float]:
    """Make the gauges of tools: those without a running call are left out, and tools without a row are summed up.

    Args:
        tools: See `tool_numbers`.
        family: One of `GAUGES`.
        running: How many calls of each tool run.
    """
    named = _named(tools)
    made: dict[str, float] = {}
    for tool, count in running.items():
        if count:
            _add(made, f"{family} {named.get(tool, OTHER)}", count)
    return made


def counted(numbers: Numbers) -> tuple[dict[tuple[str, str], float], dict[str, dict[str, float]]]:
    """Parse the result of `tool_numbers`, or a sum of such results: calls by tool and outcome, durations by tool.

    Returns:
        The durations have the number of calls in each bucket, by its upper bound, and the total time as ``sum``.
    """
    outcomes: dict[tuple[str, str], float] = {}
    durations: dict[str, dict[str, float]] = {}
    for name, number in sorted(numbers.counters.items()):
        kind, _, rest = name.partition(" ")
        tool, _, last = rest.rpartition(" ")
        if kind == CALLS:
            outcomes[tool, last] = number
        elif kind == DURATION:
            durations.setdefault(tool, {})[last] = number
    return outcomes, durations


def families(numbers: Numbers) -> Iterator[Any]:
    """The families for Prometheus; none if the bridge is not served."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    calls = CounterMetricFamily(CALLS, "Tool calls that ended, by tool and outcome.", labels=["tool", "outcome"])
    outcomes, found = counted(numbers)
    for labels, number in outcomes.items():
        calls.add_metric([*labels], number)
    if next(iter(COUNTERS)) not in numbers.counters:
        return
    yield calls
    durations = HistogramMetricFamily(DURATION, "How long tool calls took.", labels=["tool"])
    for tool, parts in found.items():
        seconds, total = parts.pop("sum", 0.0), 0.0
        buckets = []
        for bound in sorted({*parts, "+Inf"}, key=float):
            total += parts.get(bound, 0.0)
            buckets.append((bound, total))
        durations.add_metric([tool], buckets, seconds)
    yield durations
    for name, text in COUNTERS.items():
        yield CounterMetricFamily(name, text, value=numbers.counters.get(name, 0.0))
    for name, text in GAUGES.items():
        yield GaugeMetricFamily(name, text, value=numbers.gauges.get(name, 0.0))


def _named(tools: Iterable[str]) -> dict[str, str]:
    """The tools that have their own rows on the board."""
    named, size = dict[str, str](), 0
    for tool in tools:
        size += _ENTRIES * (len(json.dumps(tool)) + _ENTRY_BYTES)
        if size > _MOST_BYTES:
            break
        named[tool] = tool
    return named


def _add(made: dict[str, float], name: str, number: float) -> None:
    made[name] = made.get(name, 0.0) + number
