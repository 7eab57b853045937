"""``python -m benchmarks``: compares invoker with a bare grpc.aio echo, a C++ echo and any riff server that already
runs.

Servers run on core 0 and drivers on core 1 if taskset is installed. A row of the tables is a workload, and a column is
a server. A round runs every column of every row, one after another; rounds are repeated, and medians are compared.
Single cases: ``--only gen,bare,cpp --rows 8x16 --rounds 1``; a row that is not in the table can be given as
STREAMSxBYTES. The report goes to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence

from benchmarks import callers, results, servers
from benchmarks.aims import aims
from benchmarks.evergreen import evergreen
from benchmarks.graphpipe import batches, graphpipe
from benchmarks.measure import Clock, Samples, rounds, say
from benchmarks.memory import flooded, idle_async, idle_sync, slow_readers
from benchmarks.open_streams import open_streams
from benchmarks.report import table, tables
from benchmarks.reports import federated
from benchmarks.rows import PEER_ROWS, ROWS, Row, row_named
from benchmarks.servers import Series, all_series
from benchmarks.startup import startup
from benchmarks.stores import stores
from benchmarks.toolbridge import toolbridge
from benchmarks.workers import workers

Extra = Callable[..., str]
EXTRAS: dict[str, Extra] = {
    "workers": workers,
    "slow-readers": slow_readers,
    "flooded": flooded,
    "idle-sync": idle_sync,
    "idle-async": idle_async,
    "open-streams": open_streams,
    "startup": startup,
    "evergreen": evergreen,
    "graphpipe": graphpipe,
    "batches": batches,
    "stores": stores,
    "toolbridge": toolbridge,
    "federated": federated,
}
_QUICK_SCALE = 0.25


def main() -> int:
    """Run the chosen measurements, and print a report in Markdown."""
    args = _arguments()
    servers.end_with_servers()
    notes = servers.absences() | callers.absences()
    columns = _columns(args.only, all_series(args.peer, args.before), notes)
    rows, extras = _chosen(args.rows, args.peer)
    if not servers.PEER_PYTHON.exists():
        notes["graphpipe"] = "no inferences and no batches beside a bare ASGI echo: uvicorn is missing (`make bench`)"
        extras = [one for one in extras if one not in ("graphpipe", "batches")]
    if shutil.which("h2load") is None:
        notes["posts"] = "no rates of HTTP: h2load is missing (Debian: nghttp2-client)"
        rows = [row for row in rows if (row.mode, row.driver) != ("posts", "h2load")]
    rows = [row for row in rows if row.driver not in notes]
    rows = [row.scaled(_QUICK_SCALE if args.quick else args.scale) for row in rows]
    number = 1 if args.quick else args.rounds
    where = results.environment(number, list(dict.fromkeys(notes.values())))
    say(where)
    clock = Clock()
    found = rounds(rows, columns, number, clock) if rows else {}
    others = _others(extras, columns, found, clock, quick=args.quick)
    parts = [
        where,
        aims(found, is_whole=not args.rows and not args.only),
        tables(rows, columns, found),
        *others,
        _times(clock),
    ]
    report = "\n\n".join(part for part in parts if part)
    print(report)
    if args.write:
        results.draw(rows, columns, found)
        results.write(report)
    return 0


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join([*(row.name for row in ROWS), *EXTRAS])
    options.add_argument(
        "--only", default="", metavar="COLUMNS", help="columns, such as gen,bare,cpp,agen-aio; default: all"
    )
    options.add_argument("--rows", default="", metavar="ROWS", help=f"some of {names}; default: all")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scale", type=float, default=1.0, help="factor for the number of calls")
    options.add_argument("--quick", action="store_true", help="one round, a quarter of the calls, fewer streams")
    options.add_argument("--write", action="store_true", help="write benchmarks/results.md and the plots")
    options.add_argument("--peer", default=os.environ.get("PEER", ""), help="HOST:PORT of an invoker that echoes text")
    before = os.environ.get("BEFORE", "")
    options.add_argument(
        "--before", default=before, metavar="FOLDER", help="an older checkout with a .venv, as columns"
    )
    return options.parse_args()


def _chosen(names: str, peer: str) -> tuple[list[Row], list[str]]:
    """Split ``--rows`` into rows of the table, the peer's included, and names of other measurements."""
    if not names:
        return [*ROWS, *PEER_ROWS] if peer else list(ROWS), list(EXTRAS)
    wanted = names.split(",")
    try:
        return [row_named(name) for name in wanted if name not in EXTRAS], [name for name in wanted if name in EXTRAS]
    except ValueError:
        raise SystemExit(f"--rows: {names} is not one of {', '.join([*(row.name for row in ROWS), *EXTRAS])}") from None


def _columns(names: str, everything: Sequence[Series], missing: dict[str, str]) -> list[Series]:
    wanted = names.split(",") if names else [one.name for one in everything]
    if unknown := set(wanted) - {one.name for one in everything}:
        raise SystemExit(f"--only: no such column: {', '.join(sorted(unknown))}")
    return [one for one in everything if one.name in wanted and not {one.base, one.driver} & missing.keys()]


def _others(names: Sequence[str], columns: Sequence[Series], found: Samples, clock: Clock, *, quick: bool) -> list[str]:
    parts = []
    for name in names:
        say(f"{name} ...")
        more = {"samples": found} if name == "batches" else {}
        parts.append(EXTRAS[name](columns, quick=quick, **more))
        say(parts[-1])
        clock.done(name)
    return parts


def _times(clock: Clock) -> str:
    parts = sorted(clock.took.items(), key=lambda part: -part[1])
    rows = [[name, f"{took:.0f}"] for name, took in [*parts, ("all", sum(clock.took.values()))]]
    return table("Time that this run took, all rounds", ("part", "seconds"), rows)


if __name__ == "__main__":
    sys.exit(main())
