"""``python -m tests.simulate --seeds 100000``: run many seeds; ``--seed 7``: run one and show its steps."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeAlias

from tests.simulate.sessions import simulate_session
from tests.simulate.verdict import Violation
from tests.simulate.world import simulate

Found: TypeAlias = tuple[Counter[str], str]
"""How invocations ended, and the violation, if there was one."""


def main() -> int:
    """Exit code 1 when a seed breaks an invariant; the text names it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=3000, help="run so many seeds")
    options.add_argument("--seed", type=int, default=None, help="run this one and show its steps")
    options.add_argument("--sessions", action="store_true", help="with --seed: it is one of an Evergreen session")
    options.add_argument("--explore", action="store_true", help="begin at another seed each time instead of 0")
    args = options.parse_args()
    if args.seed is not None:
        (simulate_session if args.sessions else simulate)(args.seed, say=print)
        return 0
    first = time.time_ns() if args.explore else 0
    seeds = range(first, first + args.seeds)
    return _many(_calls, "seeds", seeds) or _many(_sessions, "session seeds", seeds)


def _many(run: Callable[[range], Found], what: str, seeds: range) -> int:
    """Share the seeds among processes, one for each core; each stops at its first violation."""
    began, statuses, told = time.monotonic(), Counter[str](), ""
    shares = os.cpu_count() or 1
    with ProcessPoolExecutor(shares) as pool:
        for counted, violation in pool.map(run, [seeds[first::shares] for first in range(shares)]):
            statuses.update(counted)
            told += violation
    if told:
        print(told, end="", file=sys.stderr)
        return 1
    ends = ", ".join(f"{name} {number}" for name, number in statuses.most_common())
    print(f"{len(seeds)} {what} from {seeds[0]} in {time.monotonic() - began:.1f} s: {ends}", flush=True)
    return 0


def _calls(seeds: range) -> Found:
    statuses = Counter[str]()
    for seed in seeds:
        try:
            statuses.update(simulate(seed))
        except Violation as violation:
            return statuses, f"{violation}\nseed {seed} failed; keep it in tests/simulate/kept_seeds.txt\n"
    return statuses, ""


def _sessions(seeds: range) -> Found:
    statuses = Counter[str]()
    for seed in seeds:
        try:
            statuses[simulate_session(seed)] += 1
        except Violation as violation:
            return (
                statuses,
                f"{violation}\nsession seed {seed} failed; keep it in tests/simulate/kept_session_seeds.txt\n",
            )
    return statuses, ""


if __name__ == "__main__":
    sys.exit(main())
