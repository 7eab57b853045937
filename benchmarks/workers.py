"""Two workers against one, on two cores that the driver shares: many connections, since a connection stays with one."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.load import h2load
from benchmarks.measure import FAILURES, ratio, say, warmer
from benchmarks.report import spread, table
from benchmarks.rows import Row, echo_row, row_named
from benchmarks.servers import Series, has_flag, serving

CONNECTIONS = 16


def workers(columns: Sequence[Series], *, quick: bool) -> str:
    """Rates with one and with two workers, in turns; a sentence where they cannot be had."""
    title = f"Two workers, {CONNECTIONS} connections, nothing pinned"
    if not has_flag("--workers"):
        return f"### {title}\n\nLeft out: this invoker has no --workers."
    if shutil.which("h2load") is None:
        return f"### {title}\n\nLeft out: h2load is missing (Debian: nghttp2-client)."
    cases = (echo_row(4, 16, calls=64), replace(row_named("calls"), streams=4))
    ours = [one for one in columns if one.driver == "auto" and one.base in {"gen", "agen"}]
    rows = [_compared(one, row, rounds=1 if quick else 3) for one in ours for row in cases]
    return table(title, ("server", "unit", "one worker", "two workers", "ratio"), rows)


def _compared(series: Series, row: Row, *, rounds: int) -> list[str]:
    rates: dict[int, list[float]] = {1: [], 2: []}
    warm = warmer(row).with_calls(CONNECTIONS * 8)
    for _ in range(rounds):
        for count, values in rates.items():
            command = series.command("echo", ["--workers", str(count)])
            try:
                with serving(command, core=None) as (address, _pid):
                    h2load(address, warm, connections=CONNECTIONS, core=None)
                    values.append(row.rate(h2load(address, row, connections=CONNECTIONS, core=None)))
            except FAILURES as error:
                say(f"{series.name} with {count} workers fails: {error}")
    if not all(rates.values()):
        return [series.label, row.unit, "fails"]
    return [series.label, row.unit, spread(rates[1]), spread(rates[2]), f"{ratio(rates[2], rates[1]):.2f}"]
