"""Makes Markdown tables of samples."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.measure import Samples, ratio, shown
from benchmarks.rows import Row
from benchmarks.servers import Series

_HEADINGS = {"p50": "p50, µs", "p99": "p99, µs", "core": "core, µs"}
_MEASURES = ("bare", "cpp", "peer", "fastapi", "afastapi", "uvicorn", "starlette", "astarlette")


def spread(values: Sequence[float]) -> str:
    """Format values as ``median (min-max)``; below ten, numbers have one digit after the point."""
    if len(values) == 1:
        return shown(values[0])
    return f"{shown(median(values))} ({shown(min(values))}-{shown(max(values))})"


def tables(rows: Sequence[Row], columns: Sequence[Series], found: Samples) -> str:
    """Make one table per row: the figures, and their ratios to the bare echo, C++ and the peer, if measured."""
    parts = []
    for row in rows:
        measured = [one for one in columns if (row.name, one.name) in found]
        if measured:
            parts.append(_table(row, measured, found))
    return "\n\n".join(parts)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Make a titled table; cells are text, and short rows are filled with empty cells."""
    filled = [[*row, *[""] * (len(head) - len(row))] for row in rows]
    return "\n".join([f"### {title}\n", _line(head), "|--" * len(head) + "|", *map(_line, filled)])


def _table(row: Row, columns: Sequence[Series], found: Samples) -> str:
    against = [one for one in columns if one.base in _MEASURES]
    figures = [one for one in row.figures if one in found[row.name, columns[0].name]]
    head = ["server"]
    for figure in figures:
        title = row.unit if figure == "rate" else _HEADINGS[figure]
        head += [f"{title} {row.one}" if figure == "core" else title, *(f"÷ {one.name}" for one in against)]
    rows = []
    for one in columns:
        cells = [one.label]
        for figure in figures:
            values = found[row.name, one.name][figure]
            cells.append(spread(values))
            cells += [f"{ratio(values, found[row.name, other.name][figure]):.2f}" for other in against]
        rows.append(cells)
    return table(row.title, head, rows)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
