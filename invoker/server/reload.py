"""``--reload``: serve in a child process, and replace it whenever the author's files change.

The parent watches and never imports the author's code. On a change it first runs ``invoker inspect`` on the new code:
if the code is broken, the error is shown and the old child continues to serve; otherwise the child drains (for a short
time) and a new one takes its ports.

A terminal sends Ctrl-C to both processes. The child ignores it and waits for SIGTERM, so that the first Ctrl-C reaches
it once, and drains as without ``--reload``. SIGHUP means that the code has changed.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from invoker.errors import StartupError
from invoker.server.stopping import HOW_TO_LEAVE, Hangups, leave_at_once
from invoker.settings import Config
from invoker.telemetry.ready import announce

log = logging.getLogger(__name__)

_DRAIN_S = 3.0
"""Seconds that running invocations get when the code changes, unless INVOKER_DRAIN_S says otherwise."""

_VARIABLE = "INVOKER_RELOADED"  # set in a process that is a child of ``--reload``


def serve_with_reload(entrypoint: str, argv: list[str]) -> int:
    """Serve until SIGTERM or SIGINT, in a new process after each change.

    Args:
        entrypoint: The entrypoint that is served.
        argv: The command line with ``--reload``; children get it without.

    Returns:
        The exit code of the last child.

    Raises:
        StartupError: watchfiles is not installed.
    """
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        raise StartupError("--reload needs the package watchfiles; pip install watchfiles") from None
    stop = threading.Event()
    child = _Child(entrypoint, [one for one in argv if one != "--reload"])

    hangups = Hangups()

    def stopped(number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP and not hangups.is_end():
            log.warning("SIGHUP is ignored; the code is reloaded when a file changes")
            return
        if stop.is_set():
            child.kill()
            leave_at_once(number)
        stop.set()
        if number == signal.SIGINT:
            announce(HOW_TO_LEAVE)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stopped)
    folder = watched_folder(entrypoint)
    log.info("watching %s", folder)
    changes = watch(folder, watch_filter=PythonFilter(), stop_event=stop, raise_interrupt=False, debounce=200)
    return child.serve(changes)


def taken_drain_s(config: Config) -> float | None:
    """How many seconds this process drains when the code has changed; None if it is not a child of ``--reload``.

    The variable is removed, so that programs which this process starts do not behave as children of ``--reload``.
    """
    if not os.environ.pop(_VARIABLE, ""):
        return None
    return _DRAIN_S if config.drain_s == Config().drain_s else config.drain_s


def watched_folder(entrypoint: str) -> Path:
    """The folder whose Python files are watched: the folder of the named file, otherwise the current folder."""
    name = entrypoint.rpartition(":")[0] or entrypoint
    path = Path(name)
    return path.resolve().parent if path.suffix == ".py" else Path.cwd()


class _Child:
    """The serving process, which is replaced after each change."""

    def __init__(self, entrypoint: str, argv: list[str]) -> None:
        self._entrypoint = entrypoint
        self._argv = argv
        self._process: subprocess.Popen[bytes] | None = None

    def serve(self, changes: Iterator[object]) -> int:
        self._start()
        try:
            for _ in changes:
                problem = self._problem()
                if problem:
                    log.error("not reloaded: %s", problem)
                    continue
                log.info("the code changed: reloading")
                self._end(signal.SIGHUP)
                self._start()
        finally:
            code = self._end(signal.SIGTERM)
        return code

    def kill(self) -> None:
        """End the process at once, if it has started."""
        if self._process is not None:
            self._process.kill()

    def _start(self) -> None:
        environment = {**os.environ, _VARIABLE: "1"}
        # In development no load balancer needs time to notice the end.
        command = [sys.executable, "-m", "invoker", *self._argv, "--lame-duck-s", "0"]
        self._process = subprocess.Popen(command, env=environment)  # noqa: S603

    def _end(self, number: signal.Signals) -> int:
        """Send the child a signal, wait until it has drained, and return its exit code."""
        process = self._process
        assert process is not None
        if process.poll() is None:
            process.send_signal(number)
        return process.wait()

    def _problem(self) -> str:
        """One sentence about the reason why the new code cannot be served; empty if it can."""
        command = [sys.executable, "-m", "invoker", "inspect", self._entrypoint]
        looked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        return "" if looked.returncode == 0 else (looked.stderr or looked.stdout).strip()
