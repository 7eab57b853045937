"""Makes the README's plot from results.md: requests per second, compared with FastAPI.

``python -m benchmarks.headline`` and `make bench` write the plot.
"""

from __future__ import annotations

import re

from benchmarks.plots import Bar, chart
from benchmarks.results import PLOTS, RESULTS

PLOT = PLOTS / "http.svg"
_TITLE = "HTTP: JSON `square`, 16 connections"
_ROW = re.compile(r"^\| ([^|]+) \| ([\d,]+) \(([\d,]+)-([\d,]+)\) \|", re.MULTILINE)
_BARS = {
    "sync request/reply": ("invoker, def", "gen"),
    "FastAPI on uvicorn, def": ("FastAPI, def", "bare"),
    "async request/reply": ("invoker, async def", "agen"),
    "FastAPI on uvicorn, async def": ("FastAPI, async def", "bare"),
}


def headline(report: str) -> str:
    """Make the text of the SVG file from the report's Markdown.

    Raises:
        KeyError: The report lacks one of the figures.
    """
    _, _, rest = report.partition(f"### {_TITLE}\n")
    found = {label: figures for label, *figures in _ROW.findall(rest.partition("\n### ")[0])}
    bars = []
    for label, (name, base) in _BARS.items():
        value, low, high = (float(one.replace(",", "")) for one in found[label])
        bars.append(Bar(name, base, low, value, high))
    return chart("A JSON number in, its square out", "requests/s over HTTP/1.1, 16 connections, one core", [("", bars)])


if __name__ == "__main__":
    PLOT.write_text(headline(RESULTS.read_text()), encoding="utf-8")
