"""Rounds: all columns of a row one after another, row by row, and all of it again; medians and ratios come last."""

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

# (row, column) -> figure -> one value a round; the figures are rate, or p50 and p99.
Samples = dict[tuple[str, str], dict[str, list[float]]]


# What makes a cell of a table "fails" and lets the run go on.
FAILURES = (WrongReplyError, StartError, WireError, subprocess.SubprocessError)


class Clock:
    """How long each part of a run takes."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}
        self._before = monotonic()

    def done(self, part: str) -> None:
        """What has passed since the last part was done is this one's."""
        now = monotonic()
        self.took[part] = self.took.get(part, 0.0) + now - self._before
        self._before = now


class Fleet:
    """The servers of one round, each started and warmed when it is first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._served: dict[tuple[str, str, str], tuple[str, int]] = {}

    def served(self, series: Series, row: Row) -> tuple[str, int]:
        """Where a column serves a row's work, and its process, which is 0 for one that we have not started."""
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
    """A little of what a row sends; the half-close comes late, which no peer minds."""
    payload = row.body.payload[:64]  # the JSON value is shorter
    body = Body(50, payload, row.body.media_type, row.body.inputs, row.body.headers)
    return Row("warm", "", 8, 32, body)


def rounds(rows: Sequence[Row], columns: Sequence[Series], number: int, clock: Clock) -> Samples:
    """Figures of every column of every row, one a round."""
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
    """All figures of a row, with ``core``: the microseconds of the server's core for a call."""
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
    """The same of streams by HTTP and WebSocket; the processor time is that of an item."""
    path = f"/{series.base}_json/ws" if row.mode == "talk" else "/"
    each = row.each if row.mode == "items" else row.each * row.calls // row.streams
    plan = Plan(row.mode, address, path, row.driver, row.streams, row.calls, each, row.window)
    run(replace(plan, calls=row.streams, each=min(each, 50)))
    before = group_processor_s(pid)
    found = run(plan)
    used = group_processor_s(pid) - before
    return {**found, "rate": row.rate(found["seconds"]), "core": used / row.rate(1.0) * 1e6}


def ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """The ratio of two medians."""
    return median(values) / median(others)


def shown(value: float) -> str:
    """One figure; below ten with a digit behind the point."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def say(text: str) -> None:
    """Progress goes to stderr: stdout is the report."""
    print(text, file=sys.stderr, flush=True)
