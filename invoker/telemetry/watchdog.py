"""`Watchdog`: logs the line of an async function that blocks the loop.

A thread checks whether the loop still runs callbacks. If it does not, the loop's own stack shows where it is stuck, and
the innermost frame outside the standard library and the invoker is the author's line. Each line is logged once.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
import time
from pathlib import Path
from types import FrameType

log = logging.getLogger(__name__)

_ASYNCIO = str(Path(asyncio.__file__).parent)
_LOOP = {"_run_once", "run_forever", "run_until_complete", "run"}
"""Functions of asyncio that run a loop."""

_HOUSE = (str(Path(__file__).parent.parent), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))


class Watchdog:
    """Watches one loop from a daemon thread.

    Args:
        blocked_s: Seconds for which the loop may run no callback.
    """

    def __init__(self, blocked_s: float) -> None:
        self.blocked_s = blocked_s
        self._beat = time.monotonic()
        self._named: set[tuple[str, int]] = set()
        self._stopped = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._thread_id = 0

    def start(self) -> None:
        """Begin to watch the running loop."""
        self._thread_id = threading.get_ident()
        self._tick(asyncio.get_running_loop())
        threading.Thread(target=self._watch, name="invoker-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching the loop; a blocked loop is logged no more."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beat = time.monotonic()
        self._timer = loop.call_later(self.blocked_s / 4, self._tick, loop)

    def _watch(self) -> None:
        while not self._stopped.wait(self.blocked_s / 2):
            silent_s = time.monotonic() - self._beat
            if silent_s > self.blocked_s:
                self._name(sys._current_frames().get(self._thread_id), silent_s)  # noqa: SLF001 - the documented way

    def _name(self, frame: FrameType | None, silent_s: float) -> None:
        innermost = frame
        while frame is not None and frame.f_code.co_filename.startswith(_HOUSE):
            if frame.f_code.co_name in _LOOP and frame.f_code.co_filename.startswith(_ASYNCIO):
                return  # the loop runs no code of authors: the machine was slow, and the author is not to blame
            frame = frame.f_back
        if frame is None or innermost is None or "<frozen" in frame.f_code.co_filename:
            return
        place = (frame.f_code.co_filename, frame.f_lineno)
        if place in self._named:
            return
        self._named.add(place)
        log.warning(
            "%s:%s in %s() blocks the event loop for %.2f s, and every other async invocation with it; "
            "await something instead, or write the function without async",
            Path(place[0]).name, place[1], frame.f_code.co_name, silent_s,
        )  # fmt: skip
