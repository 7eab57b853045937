"""Markdown out of samples."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measure import Samples, ratio, spread
from benchmarks.rows import Row
from benchmarks.servers import Series


def count(value: float) -> str:
    """A rate as it is printed."""
    return f"{value:,.0f}"


def throughput_tables(rows: Sequence[Row], columns: Sequence[Series], found: Samples) -> str:
    """One table a row: rate, ratio to the bare echo and to C++."""
    parts = []
    for row in rows:
        bare, cpp = found.get((row.name, "bare")), found.get((row.name, "cpp"))
        lines = [f"### {row.title}\n", f"| server | {row.unit} | ÷ bare | ÷ C++ |", "|--|--|--|--|"]
        for series in columns:
            if values := found.get((row.name, series.name)):
                cells = (spread(values, count), ratio(values, bare), ratio(values, cpp))
                lines.append(f"| {series.label} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
