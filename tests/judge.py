"""`make conformance`: serves the named functions and lets the conformance suite judge them from outside.

``GRPC_DRIVER`` says which doors are judged: ``aio``; ``fast``, which is judged twice, since it serves the calls of a
catalogue with async functions on its loop and those of one without in threads; by default all of them. Each is judged
in both protocols; an argument ``--protocol`` chooses one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from tests.conftest import SLOW
from tests.serving import ROOT, serving

_SERVED = {
    "fast": (
        ("riff", "functions.conformance", "fast"),
        ("riff", "tests.sync_catalogue", "fast"),
        ("evergreen", "functions.conformance_evergreen", "fast"),
        ("evergreen", "tests.sync_evergreen", "fast"),
    ),
    "aio": (("riff", "functions.conformance", "aio"), ("evergreen", "functions.conformance_evergreen", "aio")),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Give the suite's worst exit code; further arguments are the suite's own."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--protocol", choices=("riff", "evergreen", "all"), default="all")
    chosen, given = parser.parse_known_args(argv)
    wanted = os.environ.get("GRPC_DRIVER") or "all"
    served = _SERVED["fast"] + _SERVED["aio"] if wanted == "all" else _SERVED[wanted]
    return max([_judge(*each, given) for each in served if chosen.protocol in (each[0], "all")])


def _judge(protocol: str, entrypoint: str, driver: str, given: list[str]) -> int:
    print(f"\n== {protocol}: {entrypoint} behind --grpc-driver {driver}", flush=True)
    with serving(entrypoint, "--grpc-driver", driver) as served:
        command = [sys.executable, "-m", "invoker.conformance", "--target", served.grpc, "--http", served.http]
        command += ["--protocol", protocol, "--timeout", f"{5 * SLOW:g}", *given]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
