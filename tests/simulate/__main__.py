"""``python -m tests.simulate --seeds 100000``: run many seeds; ``--seed 7``: run one and show its steps."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulate.sessions import simulate_session
from tests.simulate.verdict import Violation
from tests.simulate.world import simulate


def main() -> int:
    """Exit code 1 when a seed breaks an invariant; the text names it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=3000, help="run the seeds from 0 up to this")
    options.add_argument("--seed", type=int, default=None, help="run this one and show its steps")
    options.add_argument("--sessions", action="store_true", help="with --seed: it is one of an Evergreen session")
    args = options.parse_args()
    if args.seed is not None:
        (simulate_session if args.sessions else simulate)(args.seed, say=print)
        return 0
    return _calls(args.seeds) or _sessions(args.seeds)


def _calls(seeds: int) -> int:
    began, statuses = time.monotonic(), Counter[str]()
    for seed in range(seeds):
        try:
            statuses.update(simulate(seed))
        except Violation as violation:
            print(violation, file=sys.stderr)
            print(f"seed {seed} failed; keep it in tests/simulate/kept_seeds.txt", file=sys.stderr)
            return 1
    ends = ", ".join(f"{name} {number}" for name, number in statuses.most_common())
    print(f"{seeds} seeds in {time.monotonic() - began:.1f} s: {ends}")
    return 0


def _sessions(seeds: int) -> int:
    began, statuses = time.monotonic(), Counter[str]()
    for seed in range(seeds):
        try:
            statuses[simulate_session(seed)] += 1
        except Violation as violation:
            print(violation, file=sys.stderr)
            print(f"session seed {seed} failed; keep it in tests/simulate/kept_session_seeds.txt", file=sys.stderr)
            return 1
    ends = ", ".join(f"{name} {number}" for name, number in statuses.most_common())
    print(f"{seeds} session seeds in {time.monotonic() - began:.1f} s: {ends}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
