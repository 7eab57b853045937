"""The tables of memory in docs/how-to/harden.md: what a process has at most, then, and after its clients have gone.

python -m tests.attack.held [unread inputs hoards ...] [--tree DIR]

Each row is one run, on a victim of its own with the default settings. *Then* is once nothing changes any more, and
*afterwards* is ten seconds after the last client has gone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.attack import hoards, inputs, unread
from tests.attack.runner import Attack, Figures, probed, victim
from tests.serving import ROOT

_OWN = ("peak MiB", "still MiB", "after MiB", "settled s")
_SECONDS = 5.0


@contextmanager
def _args(*args: str) -> Iterator[Sequence[str]]:
    yield args


TABLES: Mapping[str, tuple[Mapping[str, Attack], AbstractContextManager[Sequence[str]]]] = {
    "inputs": (inputs.ATTACKS, inputs.serves()),
    "unread": (unread.ATTACKS, _args(*unread.ARGS)),
    "hoards": ({name: hoards.ATTACKS[name] for name in ("results", "lists")}, _args(hoards.FUNCTIONS)),
}
"""By name: the rows, and the command line of their victims."""


def row(name: str, figures: Figures, livez_s: float) -> str:
    """One row of a table: the figures in MiB, how the calls ended, and the longest time of `/livez`."""
    ends = ", ".join(f"{count} {how}" for how, count in figures.items() if how not in _OWN)
    most, then, after = (figures[one] for one in _OWN[:3])
    return f"| `{name}` | {most} | {then} | {after} | {ends} | {livez_s:.1f} s |"


def _main() -> None:
    parser = argparse.ArgumentParser(description="Measures the memory of a server under clients that hold much.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a table or a row; without any: all")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout that the victims run from (this one)")
    given = parser.parse_args()
    for table, (attacks, serves) in TABLES.items():
        wanted = [one for one in attacks if not given.names or table in given.names or one in given.names]
        if not wanted:
            continue
        print("| NAME | the most, MiB | then | afterwards | calls | `/livez` |\n|--|--|--|--|--|--|")
        with serves as args:
            for name in wanted:
                with victim(*args, tree=given.tree) as target:
                    account = probed(attacks[name], target, _SECONDS)
                print(row(name, account.figures, account.livez_s), flush=True)


if __name__ == "__main__":
    _main()
