"""Rounds: all columns of a row one after another, row by row, and all of it again; medians and ratios come last."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median

from benchmarks.bodies import Body
from benchmarks.load import WrongReplyError, load
from benchmarks.rows import Row
from benchmarks.servers import Series, serving

Samples = dict[tuple[str, str], list[float]]


class Fleet:
    """The servers of one round, each started and warmed when it is first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._addresses: dict[tuple[str, str], str] = {}

    def address(self, series: Series, row: Row) -> str:
        """Where a column serves a row's work."""
        if series.address:
            return series.address
        key = (series.name, row.work)
        if key not in self._addresses:
            address, _ = self._stack.enter_context(serving(series.command(row.work)))
            warm = Body(50, row.body.payload[:64], row.body.media_type, row.body.inputs, row.body.headers)
            if row.body.media_type == "application/json":
                warm = Body(50, row.body.payload, row.body.media_type)
            load(address, Row("warm", "", 8, 16, warm))
            self._addresses[key] = address
        return self._addresses[key]


def throughput(rows: Sequence[Row], columns: Sequence[Series], rounds: int) -> Samples:
    """Rates of every column of every row, one a round."""
    found: Samples = {}
    for number in range(rounds):
        with ExitStack() as stack:
            fleet = Fleet(stack)
            for row in rows:
                _one_row(row, [one for one in columns if one.serves(row.work)], fleet, found)
        say(f"round {number + 1} of {rounds} is done")
    return found


def _one_row(row: Row, columns: Sequence[Series], fleet: Fleet, found: Samples) -> None:
    for series in columns:
        try:
            rate = row.rate(load(fleet.address(series, row), row))
        except WrongReplyError as error:
            say(f"{series.name} fails: {error}")
            continue
        say(f"{row.name:>10} {series.name:<12} {rate:>12,.0f} {row.unit}")
        found.setdefault((row.name, series.name), []).append(rate)


def spread(values: Sequence[float], show: Callable[[float], str]) -> str:
    """``median (min-max)``."""
    if len(values) == 1:
        return show(values[0])
    return f"{show(median(values))} ({show(min(values))}-{show(max(values))})"


def ratio(values: Sequence[float], others: Sequence[float] | None) -> str:
    """The ratio of two medians, or a dash."""
    return f"{median(values) / median(others):.2f}" if others else "-"


def say(text: str) -> None:
    """Progress goes to stderr: stdout is the report."""
    print(text, file=sys.stderr, flush=True)
