"""`as_init`: the duties of the first process of a container: to reap whatever ends there, and to pass signals on.

Programs whose parent is gone become children of the first process, in a container the serving one, and stay zombies
until it waits for them. If the serving process waited for any child, it would take those that the author's code waits
for. So the first process starts the serving one and does nothing else. What it has started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

__all__ = ["as_init"]

_NAMES = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")


def as_init() -> None:
    """Go on in a new process if this is the first one of a container; the first one ends with the new one."""
    if os.getpid() != 1:
        return
    server = os.fork()
    if server == 0:
        _take_terminal()
        return

    def pass_on(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, number)

    for name in _NAMES:
        signal.signal(signal.Signals[name], pass_on)
    while True:
        ended, status = os.wait()
        if ended == server:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _take_terminal() -> None:
    """A group of its own, in front of the terminal: Ctrl-C is then for the serving process, which hears it once."""
    os.setpgid(0, 0)
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if sys.stdin.isatty():
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # sent to a process that is not in front yet
            os.tcsetpgrp(sys.stdin.fileno(), os.getpid())
            signal.signal(signal.SIGTTOU, before)
