"""Two workers compared with one, by the processor time of the servers, since the driver shares the machine's two cores.

The driver itself takes a core, so its rate says little. Therefore the processor time of one worker for a row is
compared with that of the busier of two workers: with a core for each, the row would take this time. There are many
connections, since a connection stays with one worker.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from benchmarks.load import h2load
from benchmarks.measure import FAILURES, ratio, say, warmer
from benchmarks.process import processor_s
from benchmarks.report import spread, table
from benchmarks.rows import Row, echo_row, row_named
from benchmarks.servers import Series, has_flag, serving

CONNECTIONS = 16


@dataclass(slots=True)
class _Found:
    """For each round: messages or calls per second, and the busiest worker's microseconds per message or call."""

    rates: list[float] = field(default_factory=list)
    busiest_us: list[float] = field(default_factory=list)


def workers(columns: Sequence[Series], *, quick: bool) -> str:
    """Measure rates and processor time with one and two workers in turn, or say why this is impossible."""
    title = f"Two workers, {CONNECTIONS} connections, nothing pinned; µs of the busier worker"
    if not has_flag("--workers"):
        return f"### {title}\n\nLeft out: this invoker has no --workers."
    if shutil.which("h2load") is None:
        return f"### {title}\n\nLeft out: h2load is missing (Debian: nghttp2-client)."
    cases = (echo_row(4, 16, calls=256), replace(row_named("calls"), streams=4).with_calls(12000))
    ours = [one for one in columns if one.driver == "auto" and one.base in {"gen", "agen"}]
    rows = [_compared(one, row, rounds=1 if quick else 3) for one in ours for row in cases]
    return table(title, ("server", "unit", "one", "two", "µs, one", "µs, two", "ratio of µs"), rows)


def _compared(series: Series, row: Row, *, rounds: int) -> list[str]:
    found = {1: _Found(), 2: _Found()}
    for _ in range(rounds):
        for count, values in found.items():
            try:
                _measure(series.command("echo", ["--workers", str(count)]), row, values)
            except FAILURES as error:
                say(f"{series.name} with {count} workers fails: {error}")
    one, two = found.values()
    if not (one.rates and two.rates):
        return [series.label, row.unit, "fails"]
    times = [f"{median(values.busiest_us):.1f}" for values in (one, two)]
    return [
        series.label, row.unit, spread(one.rates), spread(two.rates), *times,
        f"{ratio(one.busiest_us, two.busiest_us):.2f}",
    ]  # fmt: skip


def _measure(command: list[str], row: Row, found: _Found) -> None:
    with serving(command, core=None) as (address, session):
        h2load(address, warmer(row).with_calls(CONNECTIONS * 8), connections=CONNECTIONS, core=None)
        before = _used(session)
        rate = row.rate(h2load(address, row, connections=CONNECTIONS, core=None))
        busiest_s = max(used - before.get(pid, 0.0) for pid, used in _used(session).items())
        found.rates.append(rate)
        found.busiest_us.append(busiest_s * 1e6 / row.rate(1.0))


def _used(session: int) -> dict[int, float]:
    """Return the processor time of each process in a server's session, by process id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with suppress(OSError):  # the process has ended
            if os.getsid(pid) == session:
                found[pid] = processor_s(pid)
    return found
