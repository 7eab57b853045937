"""Runs the rounds. A round measures each row, one column after another; medians and ratios are over all rounds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from time import monotonic

from benchmarks.bodies import Body, WrongReplyError
from benchmarks.client import load
from benchmarks.http2 import WireError
from benchmarks.load import measure
from benchmarks.posts import question
from benchmarks.process import group_processor_s
from benchmarks.rows import Row
from benchmarks.servers import Series, StartError, serving
from benchmarks.streamers import Plan, run

# (row, column) -> figure -> one value per round; the figures are rate, p50, p99 and core.
Samples = dict[tuple[str, str], dict[str, list[float]]]


# After one of these errors, the cell says "fails", and the run continues.
FAILURES = (WrongReplyError, StartError, WireError, subprocess.SubprocessError)


class Clock:
    """Measures the time of each part of a run."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}
        self._before = monotonic()

    def done(self, part: str) -> None:
        """Add the time since the last call of ``done`` to this part."""
        now = monotonic()
        self.took[part] = self.took.get(part, 0.0) + now - self._before
        self._before = now


class Fleet:
    """The servers of one round; each is started and warmed up at its first use."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._served: dict[tuple[str, str, str], tuple[str, int]] = {}

    def served(self, series: Series, row: Row) -> tuple[str, int]:
        """Return the address of a column's server for a row, and its process id: 0 for a peer, which ran before."""
        key = (series.name, row.work, row.transport)
        if key not in self._served:
            found = (series.address, 0)
            if not series.address:
                found = self._stack.enter_context(serving(series.command(row.work), transport=row.transport))
            if row.transport == "grpc":
                load(found[0], warmer(row))
            self._served[key] = found
        return self._served[key]


def warmer(row: Row) -> Row:
    """Make a short row that warms a server up for ``row``; its half-close comes late, which every server can handle."""
    payload = row.body.payload[:64]  # the JSON value is shorter
    body = Body(50, payload, row.body.media_type, row.body.inputs, row.body.headers)
    return Row("warm", "", 8, 32, body)


def rounds(rows: Sequence[Row], columns: Sequence[Series], number: int, clock: Clock) -> Samples:
    """Measure every column of every row ``number`` times."""
    found: Samples = {}
    for done in range(number):
        with ExitStack() as stack:
            fleet = Fleet(stack)
            for row in rows:
                _one_row(row, [one for one in columns if one.serves(row)], fleet, found)
                clock.done(row.name)
        say(f"round {done + 1} of {number} is done")
    return found


def _one_row(row: Row, columns: Sequence[Series], fleet: Fleet, found: Samples) -> None:
    for series in columns:
        try:
            figures = _figures(row.scaled(series.weight(row)), series, fleet)
        except FAILURES as error:
            say(f"{row.name:>17} {series.name:<12} fails: {error}")
            continue
        text = " ".join(f"{shown(figures[name]):>12}" for name in row.figures)
        say(f"{row.name:>17} {series.name:<12} {text}")
        for name, value in figures.items():
            found.setdefault((row.name, series.name), {}).setdefault(name, []).append(value)


def _figures(row: Row, series: Series, fleet: Fleet) -> dict[str, float]:
    """Measure a row; ``core`` is the server's processor time for a call in microseconds."""
    address, pid = fleet.served(series, row)
    if row.is_stream:
        return _streamed(row, series, address, pid)
    asked = question(series, row) if row.mode == "posts" else None
    if asked is not None:
        measure(address, row.with_calls(max(row.streams, row.calls // 20)), asked)
    before = group_processor_s(pid)
    figures = measure(address, row, asked)
    return {**figures, "core": (group_processor_s(pid) - before) / row.calls * 1e6}


def _streamed(row: Row, series: Series, address: str, pid: int) -> dict[str, float]:
    """Measure a row of streams by HTTP or WebSocket; ``core`` is the processor time for an item or message."""
    path = f"/{series.base}_json/ws" if row.mode == "talk" else "/"
    each = row.each if row.mode == "items" else row.each * row.calls // row.streams
    plan = Plan(row.mode, address, path, row.driver, row.streams, row.calls, each, row.window)
    run(replace(plan, calls=row.streams, each=min(each, 50)))
    before = group_processor_s(pid)
    found = run(plan)
    used = group_processor_s(pid) - before
    return {**found, "rate": row.rate(found["seconds"]), "core": used / row.rate(1.0) * 1e6}


def ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the ratio of two medians."""
    return median(values) / median(others)


def shown(value: float) -> str:
    """Format a figure; below ten, it has one digit after the point."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def say(text: str) -> None:
    """Print progress to stderr, since stdout is for the report."""
    print(text, file=sys.stderr, flush=True)
