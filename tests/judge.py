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
import tempfile
from collections.abc import Mapping, Sequence

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


# Of Evergreen, what an operator may allow is judged at a target where it is allowed, unless a choice was made.
_ALLOWING = {
    "INVOKER_EVERGREEN_METADATA": "identical",
    "INVOKER_TARGETS": "configured",
    "INVOKER_ACTIONS": "ask=functions.conformance_evergreen:upper",
    "INVOKER_INPUTS": "aka=text",
    "INVOKER_REF_HTTP": "public",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Give the suite's worst exit code; further arguments are the suite's own."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--protocol", choices=("riff", "evergreen", "all"), default="all")
    chosen, given = parser.parse_known_args(argv)
    wanted = os.environ.get("GRPC_DRIVER") or "all"
    served = _SERVED["fast"] + _SERVED["aio"] if wanted == "all" else _SERVED[wanted]
    served = tuple(each for each in served if chosen.protocol in (each[0], "all"))
    codes = [_judge(*each, given) for each in served]
    if chosen.protocol != "riff" and not {"--only", "--chapter", "--list"} & set(given):
        codes.append(_judge_allowing(served[-1][2], given))
    return max(codes)


def _judge(protocol: str, entrypoint: str, driver: str, given: list[str], env: Mapping[str, str] | None = None) -> int:
    print(f"\n== {protocol}: {entrypoint} behind --grpc-driver {driver}", flush=True)
    with serving(entrypoint, "--grpc-driver", driver, env=env) as served:
        command = [sys.executable, "-m", "invoker.conformance", "--target", served.grpc, "--http", served.http]
        command += ["--protocol", protocol, "--timeout", f"{5 * SLOW:g}", *given]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def _judge_allowing(driver: str, given: list[str]) -> int:
    with tempfile.TemporaryDirectory() as root:
        chosen = ["--chapter", "configured,references", "--ref-root", root, *given]
        env = {**_ALLOWING, "INVOKER_REF_ROOTS": root}
        return _judge("evergreen", "functions.conformance_evergreen", driver, chosen, env)


if __name__ == "__main__":
    sys.exit(main())
