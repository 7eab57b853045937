"""The program of the janitor: kills the programs of isolated children if the serving process is killed.

The kernel sends a child a signal when the serving process is gone, but the programs that it has started do not. The
serving process reports its process groups to this program; once it is gone, for whatever reason, the groups that remain
are killed. This file is run by its path and imports nothing of ours, so that the process stays small.

    +PID   a child has begun; its process group has its number
    -PID   it has ended, and nothing of its group is left
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main(descriptor: int) -> None:
    """Read until the serving process is gone."""
    groups: set[int] = set()
    with os.fdopen(descriptor) as told:
        for line in told:
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
