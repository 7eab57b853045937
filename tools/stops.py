"""``python -m tools stops [PATH...]``: run tests whose processes stop for a moment now and then, as on a busy machine.

One process at a time is stopped for a quarter of a second: pytest, one of its workers, or a process that these have
started. A test that fails only under this command depends on timing, or has found a fault. Unknown arguments are passed
to pytest; ``--module tests.fuzz`` runs that module instead.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from tools.steps import ROOT

_PYTEST = ("--quiet", "-n", "2", "--dist", "worksteal", "-m", "not slow")
"""The first arguments of pytest, so that later ones override them."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests, print how often a process was stopped, and return the exit code of the tests."""
    options = argparse.ArgumentParser(prog="python -m tools stops", description=__doc__)
    options.add_argument("--module", default="pytest", help="the module to run; default %(default)s")
    options.add_argument("--every-s", type=float, default=1.5, help="seconds between two stops; default %(default)s")
    options.add_argument("--for-s", type=float, default=0.25, help="seconds that each stop takes; default %(default)s")
    options.add_argument("--stops-seed", type=int, default=int(time.time()), help="the seed of the random stops")
    args, rest = options.parse_known_args(arguments)
    chance, count = Random(args.stops_seed), 0
    command = (sys.executable, "-m", args.module, *(_PYTEST if args.module == "pytest" else ()), *rest)
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        while not _has_ended(process, args.every_s * chance.uniform(0.7, 1.3)):
            count += stop(chance.choice(family(process.pid)), args.for_s)
    finally:
        process.terminate()
        code = process.wait()
    print(f"{count} stops of {args.for_s:g} s, chosen by --stops-seed {args.stops_seed}", flush=True)
    return code


def _has_ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def family(pid: int) -> list[int]:
    """The ids of a process and of all running processes that it has started, directly or not."""
    children = defaultdict[int, list[int]](list)
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            children[int(_status(folder)[1])].append(int(folder.name))
    found = [pid]
    for one in found:
        found += children[one]
    return found


def _status(folder: Path) -> list[str]:
    """The fields of a process in /proc: its state, its parent, and others."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def stop(pid: int, seconds: float, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Stop a process for some seconds. Returns False if it has ended, or if a test has stopped it already.

    Args:
        pid: The id of the process.
        seconds: How long it is stopped.
        sleep: Waits for this time.
    """
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if _status(Path(f"/proc/{pid}"))[0] == "T":
            return False
        signal.pidfd_send_signal(process, signal.SIGSTOP)
        try:
            sleep(seconds)
        finally:
            signal.pidfd_send_signal(process, signal.SIGCONT)
    except (ProcessLookupError, FileNotFoundError):
        return False
    finally:
        os.close(process)
    return True
