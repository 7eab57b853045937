"""`as_init`: does the duties of a container's first process: reaps ended processes, and passes signals on.

Processes whose parent has ended become children of the first process, and stay zombies until it waits for them. If the
serving process were the first one and waited for any child, it would also reap children for which the author's code
waits. So the first process only starts the serving process and waits. If the first process ends, so does the serving
one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

_NAMES = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")


def as_init() -> None:
    """Continue in a new process if this is the first one of a container; the first one ends with the new one."""
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
    """Take the foreground of the terminal: Ctrl-C then reaches the serving process, exactly once."""
    os.setpgid(0, 0)
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if sys.stdin.isatty():
            # SIGTTOU is sent to a process that is not yet in the foreground
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(sys.stdin.fileno(), os.getpid())
            signal.signal(signal.SIGTTOU, before)
