"""The time to start a server, and the memory of an idle one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks.measure import FAILURES, say
from benchmarks.process import resident_mib
from benchmarks.report import table
from benchmarks.servers import Series, serving

_STARTS = 5


def startup(columns: Sequence[Series], *, quick: bool) -> str:
    """Measure the import, the time from process start to the ready line, and the idle memory."""
    count = 3 if quick else _STARTS
    rows = [["import invoker", *_shown([_import_ms() for _ in range(count)], "ms")]]
    for one in columns:
        if one.base in {"gen", "agen", "bare"}:
            try:
                ready, resident = zip(*(_start(one) for _ in range(count)), strict=True)
            except FAILURES as error:
                say(f"{one.name} fails: {error}")
                continue
            rows.append([f"{one.label}: process start to ready line", *_shown(ready, "ms")])
            rows.append([f"{one.label}: resident when idle", *_shown(resident, "MiB")])
    return table("Start and idle memory", ("figure", "median", "range"), rows)


def _start(series: Series) -> tuple[float, float]:
    began = time.perf_counter()
    with serving(series.command("echo")) as (_, pid):
        return (time.perf_counter() - began) * 1e3, resident_mib(pid)


def _import_ms() -> float:
    """Return the time of the import, without the start of the interpreter."""
    return (_seconds("import invoker") - _seconds("pass")) * 1e3


def _seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


def _shown(values: Sequence[float], unit: str) -> tuple[str, str]:
    return f"{median(values):.0f} {unit}", f"{min(values):.0f}-{max(values):.0f}"
