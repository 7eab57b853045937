"""``python -m benchmarks``: ours against a bare grpc.aio echo, a C++ echo and any riff invoker that already runs.

Servers run on core 0 and drivers on core 1 where taskset is there. In a round the columns of a row run one after
another; rounds are repeated; medians are compared. Single cases: ``--only gen,bare,cpp --rows 8x16 --rounds 1``; a row
that is not in the table can be made up as STREAMSxBYTES.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from benchmarks.measure import rounds, say
from benchmarks.report import tables
from benchmarks.rows import PEER_ROWS, ROWS, Row, row_named
from benchmarks.servers import Series, absences, all_series


def main() -> int:
    """Measure and print Markdown."""
    args = _arguments()
    if shutil.which("h2load") is None:
        say("h2load is missing (Debian: nghttp2-client): our own client is the driver")
    rows = [row.scaled(args.scale) for row in _rows(args.rows, args.peer)]
    columns = _columns(args.only, args.peer)
    found = rounds(rows, columns, args.rounds)
    print(tables(rows, columns, found))
    return 0


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--only", default="", metavar="COLUMNS", help="such as gen,bare,cpp,agen-aio; default all")
    options.add_argument("--rows", default="", metavar="ROWS", help="such as 8x16,calls,json; default all")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scale", type=float, default=1.0, help="times the number of calls")
    options.add_argument("--peer", default=os.environ.get("PEER", ""), help="HOST:PORT of an invoker that echoes text")
    return options.parse_args()


def _rows(names: str, peer: str) -> list[Row]:
    if names:
        return [row_named(name) for name in names.split(",")]
    return [*ROWS, *PEER_ROWS] if peer else list(ROWS)


def _columns(names: str, peer: str) -> list[Series]:
    missing = absences()
    for reason in missing.values():
        say(f"left out: {reason}")
    everything = [one for one in all_series(peer) if one.base not in missing and one.driver not in missing]
    if not names:
        return everything
    wanted = names.split(",")
    if unknown := set(wanted) - {one.name for one in all_series(peer)}:
        raise SystemExit(f"no such column: {', '.join(sorted(unknown))}")
    return [one for one in everything if one.name in wanted]


if __name__ == "__main__":
    sys.exit(main())
