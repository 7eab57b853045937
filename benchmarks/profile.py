"""``python -m benchmarks.profile``: the processor time of a call, for each transport and kind of function.

A server is measured twice: without a profiler, for processor time and context switches per call (/proc), and under
cProfile, for calls of functions (`benchmarks.counted`). ``--help`` lists the cases. FOLDER is an older checkout with a
.venv. With ``--top N`` the N functions that take most of the processor time under cProfile are listed as well.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from benchmarks.load import measure
from benchmarks.measure import FAILURES, say
from benchmarks.posts import question
from benchmarks.process import processor_split_s, switches
from benchmarks.report import table
from benchmarks.rows import Row, row_named
from benchmarks.servers import Series, StartError, end_with_servers, serving

# Case -> row, style of function, calls. The row `tensor` measures GraphPipe.
CASES = {
    "grpc-sync": ("calls", "reply", 8000),
    "grpc-async": ("calls", "areply", 8000),
    "grpc-sync-aio-client": ("aio8", "reply", 2000),
    "grpc-async-aio-client": ("aio8", "areply", 2000),
    "http-sync": ("square", "reply", 8000),
    "http-async": ("square", "areply", 8000),
    "graphpipe-sync": ("tensor", "reply", 8000),
    "graphpipe-async": ("tensor", "areply", 8000),
}
_COUNTED = 0.25
_WAIT_S, _POLL_S = 20.0, 0.02
_COUNTER = Path(__file__).parent / "counted.py"
_HEAD = ("case", "µs a call", "user", "system", "gave the core away", "was preempted", "Python calls", "calls of C")

Counts = dict[str, list[float]]


def main() -> int:
    """Measure the chosen cases, and print tables in Markdown."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("cases", nargs="*", metavar="CASE", help=f"one of {', '.join(CASES)}; default: all")
    options.add_argument("--before", default="", metavar="FOLDER")
    options.add_argument("--top", type=int, default=0, metavar="N")
    args = options.parse_args()
    if unknown := set(args.cases) - CASES.keys():
        options.error(f"no such case: {', '.join(sorted(unknown))}")
    program = str(Path(args.before) / ".venv" / "bin" / "python") if args.before else sys.executable
    end_with_servers()
    rows, tops = [], []
    for case in args.cases or CASES:
        say(f"{case} ...")
        try:
            cells, top = _profiled(case, program, args.top)
        except FAILURES as error:
            say(f"{case} fails: {error}")
            continue
        rows.append([case, *cells])
        tops.append(top)
    print("\n\n".join(part for part in (table("Cost of a call", _HEAD, rows), *tops) if part))
    return 0


def _profiled(case: str, program: str, top: int) -> tuple[list[str], str]:
    name, style, calls = CASES[case]
    row, series = row_named(name).with_calls(calls), Series(style, style, style, "auto")
    flags = series.command(row.work)[3:]
    with serving([program, "-P", "-m", "invoker", *flags], transport=row.transport) as (address, pid):
        _load(address, row.with_calls(max(row.streams, calls // 10)), series)
        before, switched = processor_split_s(pid), switches(pid)
        _load(address, row, series)
        took, now = processor_split_s(pid), switches(pid)
    user, system = (_per(took[i] - before[i], calls) * 1e6 for i in (0, 1))
    gave, lost = (_per(now[i] - switched[i], calls) for i in (0, 1))
    counts = _counted(program, flags, row.scaled(_COUNTED), series)
    python, c = (sum(one[i] for one in counts.values()) for i in (0, 1)) if counts else (0.0, 0.0)
    cells = [f"{user + system:.0f}", f"{user:.0f}", f"{system:.0f}", f"{gave:.2f}", f"{lost:.2f}"]
    return [*cells, f"{python:.0f}", f"{c:.0f}"], _top(case, counts, top)


def _load(address: str, row: Row, series: Series) -> None:
    measure(address, row, question(series, row) if row.mode == "posts" else None)


def _per(value: float, calls: int) -> float:
    return value / calls


def _counted(program: str, flags: Sequence[str], row: Row, series: Series) -> Counts:
    """Return by function, for one call of the row: its calls if it is Python, its calls if it is C, its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["env", f"COUNTS={folder}", program, "-P", str(_COUNTER), *flags]
        with serving(command, transport=row.transport) as (address, pid):
            _load(address, row, series)
            before = _told(Path(folder, "0.json"), pid)
            _load(address, row, series)
            after = _told(Path(folder, "1.json"), pid)
    nothing = [0.0, 0.0, 0.0]
    return {
        name: [_per(now - then, row.calls) for now, then in zip(values, before.get(name, nothing), strict=True)]
        for name, values in after.items()
    }


def _told(file: Path, pid: int) -> Counts:
    """Let the server write its counts, and read them."""
    os.kill(pid, signal.SIGUSR1)
    waiting, waited = Event(), 0.0
    while not file.exists():
        if waited > _WAIT_S:
            raise StartError(f"the server has not written its counts within {_WAIT_S:g} s")
        waiting.wait(_POLL_S)
        waited += _POLL_S
    found: Counts = json.loads(file.read_text(encoding="utf-8"))
    return found


def _top(case: str, counts: Counts, number: int) -> str:
    chosen = sorted(counts.items(), key=lambda item: -item[1][2])[:number]
    rows = [[name, f"{python + c:.2f}", f"{seconds * 1e6:.1f}"] for name, (python, c, seconds) in chosen]
    return table(f"{case}, under cProfile", ("function", "times a call", "own µs a call"), rows) if rows else ""


if __name__ == "__main__":
    sys.exit(main())
