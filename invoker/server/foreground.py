"""`run_here`: serves until SIGINT or SIGTERM, as the command line does, in a program that continues afterwards."""

from __future__ import annotations

import functools
import gc
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from invoker.server import life
from invoker.server.server import Server
from invoker.server.stopping import release
from invoker.telemetry.logs import borrowed

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_here(server: Server, loop_factory: Callable[[], Any] | None = None) -> bool:
    """Serve until a signal ends it; returns whether nothing was cut and no hook failed.

    While it serves, the server controls the process: a second signal, or a drain that does not end, ends the process
    (R-026). Afterwards signals, garbage collector, limits and log are as they were.

    Args:
        server: The server, not yet started.
        loop_factory: Makes the event loop; None: asyncio makes it.

    Raises:
        StartupError: The server cannot be started.
    """
    config = server.config
    with borrowed(config.log_level, config.log_format), _as_before():
        return life.run_to_end(server, functools.partial(life.run, server), loop_factory) == 0


@contextmanager
def _as_before() -> Iterator[None]:
    handlers = [(number, signal.getsignal(number)) for number in _SIGNALS]
    thresholds, is_frozen = gc.get_threshold(), gc.get_freeze_count() > 0
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        yield
    finally:
        release()
        for number, handler in handlers:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set by Python
        gc.set_threshold(*thresholds)
        if not is_frozen:
            gc.unfreeze()
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
