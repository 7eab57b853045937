"""Writes the results of a whole run: benchmarks/results.md and the plots of docs/explanation."""

from __future__ import annotations

import datetime as dt
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from benchmarks.measure import Samples
from benchmarks.plots import Bar, chart
from benchmarks.rows import Row
from benchmarks.servers import Series

RESULTS = Path(__file__).parent / "results.md"
PLOTS = Path(__file__).parent.parent / "docs" / "explanation" / "plots"
_PACKAGES = ("grpcio", "protobuf", "uvloop", "msgspec")


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot file: one figure of the rows for which ``takes`` is true."""

    name: str
    title: str
    unit: str
    takes: Callable[[Row], bool]
    figure: str = "rate"
    against: str = ""


_PLOTS = (
    Plot("small-frames", "Frames of 16 B", "messages/s", lambda row: row.name in {"1x16", "8x16", "64x16"}),
    Plot("calls", "Calls of one frame, 64 in flight", "calls/s", lambda row: row.name in {"calls", "held-calls"}),
    Plot("latency-p50", "Ping-pong, p50", "µs, less is better", lambda row: row.mode == "pingpong", "p50"),
    Plot("latency-p99", "Ping-pong, p99", "µs, less is better", lambda row: row.mode == "pingpong", "p99"),
    Plot("ratios", "All loads", "times the bare grpc.aio echo", lambda row: row.mode == "load", against="bare"),
)


def environment(rounds: int, notes: Sequence[str]) -> str:
    """Describe the machine, the versions and the time of the run, and list the parts left out."""
    now = dt.datetime.now(dt.UTC).date().isoformat()
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        f"- {now}, {platform.system()} on {platform.machine()}, {os.cpu_count()} cores, load {load}",
        f"- Python {platform.python_version()}, {packages}; {_h2load()}",
        f"- {rounds} interleaved round{'s' if rounds > 1 else ''}; median (min-max); ratios of medians",
        f"- server on core 0, driver on core 1: {'yes' if shutil.which('taskset') else 'no, taskset is missing'}",
        *(f"- left out: {note}" for note in notes),
    ]
    return "\n".join(lines)


def write(report: str) -> None:
    """Write benchmarks/results.md."""
    links = "\n\n".join(
        f"![{one.title}](../docs/explanation/plots/{one.name}.svg)"
        for one in _PLOTS
        if (PLOTS / f"{one.name}.svg").exists()
    )
    head = (
        "# Results\n\nWritten by `make bench`; do not edit. Read [figures](../docs/explanation/figures.md) first.\n\n"
    )
    RESULTS.write_text(f"{head}{report}\n\n## Plots\n\n{links}\n", encoding="utf-8")


def draw(rows: Sequence[Row], columns: Sequence[Series], found: Samples) -> None:
    """Write every plot that has figures in ``found``."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    for plot in _PLOTS:
        groups = [(row.title, _bars(plot, row, columns, found)) for row in rows if plot.takes(row)]
        groups = [(title, bars) for title, bars in groups if bars]
        if groups:
            text = chart(plot.title, plot.unit, groups, digits=2 if plot.against else 0)
            (PLOTS / f"{plot.name}.svg").write_text(text, encoding="utf-8")


def _bars(plot: Plot, row: Row, columns: Sequence[Series], found: Samples) -> list[Bar]:
    scale = found.get((row.name, plot.against), {}).get(plot.figure) if plot.against else [1.0]
    bars = []
    for one in columns:
        values = found.get((row.name, one.name), {}).get(plot.figure)
        if values and scale and one.name != plot.against:
            low, value, high = (figure / median(scale) for figure in (min(values), median(values), max(values)))
            bars.append(Bar(one.label, one.base, low, value, high, pale=one.driver == "aio"))
    return bars


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _h2load() -> str:
    if shutil.which("h2load") is None:
        return "h2load is missing (Debian: nghttp2-client), so benchmarks.client is used"
    return subprocess.run(["h2load", "--version"], capture_output=True, text=True, check=True).stdout.strip()
