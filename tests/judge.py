"""`make conformance`: serves the named functions and lets the conformance suite judge them from outside.

``GRPC_DRIVER`` says which doors are judged: ``aio``; ``fast``, which is judged twice, since it serves the calls of a
catalogue with async functions on its loop and those of one without in threads; by default all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.conftest import SLOW
from tests.serving import ROOT, serving

_SERVED = {
    "fast": (("functions.conformance", "fast"), ("tests.sync_catalogue", "fast")),
    "aio": (("functions.conformance", "aio"),),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Give the suite's worst exit code; further arguments are the suite's own."""
    given = list(sys.argv[1:] if argv is None else argv)
    wanted = os.environ.get("GRPC_DRIVER") or "all"
    served = _SERVED["fast"] + _SERVED["aio"] if wanted == "all" else _SERVED[wanted]
    return max([_judge(entrypoint, driver, given) for entrypoint, driver in served])


def _judge(entrypoint: str, driver: str, given: list[str]) -> int:
    print(f"\n== {entrypoint} behind --grpc-driver {driver}", flush=True)
    with serving(entrypoint, "--grpc-driver", driver) as served:
        command = [sys.executable, "-m", "invoker.conformance", "--target", served.grpc, "--http", served.http]
        return subprocess.run([*command, "--timeout", f"{5 * SLOW:g}", *given], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
