"""`warm`: what each server that `tests.forkserver` forks would do for the first time, and with the same result.

It takes a fifth of a server's start.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence

from invoker.codecs import custom
from invoker.transports.grpc import cygrpc


def warm(path: Sequence[str]) -> None:
    """Do that in the process that forks.

    Those are patterns of Python's own tokenizer; the entry points of what is installed, for those who start in the root
    of the tree, while whoever starts elsewhere, or has another search path, looks for itself; and the call that shows
    whether the fast transport of gRPC works here.

    Args:
        path: What is in the place of the first entry of `sys.path` in a fork that is started in the root of the tree.
    """
    inspect.getsource(warm)
    before = sys.path[:]
    sys.path[:1] = path
    custom.installed("")
    sys.path[:] = before
    if _is_usable():
        cygrpc.unusable = str


def _is_usable() -> bool:
    """Asked in a process of its own, since no thread of gRPC may run before a fork."""
    if (pid := os.fork()) == 0:
        os._exit(1 if cygrpc.unusable() else 0)
    return os.waitpid(pid, 0)[1] == 0
