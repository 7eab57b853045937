"""Handles the signals that end the process, and limits the time of its end, whatever the functions do.

::

    serving --SIGTERM--> lame duck --its time is over, or another signal--> draining --another signal--> gone at once
    serving --SIGINT, or SIGTERM without a lame-duck time-----------------> draining
    serving --SIGHUP--> serving, and a line says so; where its terminal was closed, as SIGTERM

A lame duck reports that it is not ready, and still serves, so that a load balancer notices it before calls are refused.
An async function may block the loop or swallow its cancel, and a function may leave threads that never end. So `Guard`,
in a thread of its own, limits the time of each part of the end. When a limit has passed, it logs the stacks of all
threads and tasks, runs the stop hooks that have not run, flushes the log, and ends the process with exit code 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import io
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from types import FrameType
from typing import IO, Any

from invoker.errors import StartupError
from invoker.server.waking import Waker
from invoker.telemetry.ready import announce
from invoker.telemetry.stdout_capture import finish

log = logging.getLogger(__name__)

HOW_TO_LEAVE = "press Ctrl-C once more to leave at once"

REFUSED = (
    "SIGHUP: one process cannot reload and goes on unchanged; start it with --workers of two or more, or with --reload"
)

LEAST_S = 1.0
"""Seconds that the invoker itself may need to end, in addition to the time of the hooks."""

_COUNT = 4
_FLUSH_S = 1.0
STACKS = "where the process hangs"

_MOST_NAMES = 20


class Guard:
    """Ends the process when a part of its end takes too long.

    Args:
        last: Called before the process ends by force; it has a time limit of its own.
        last_s: Seconds that ``last`` may take.
        told: Called once a limit has passed, before ``last``; it must not wait.
    """

    def __init__(
        self,
        last: Callable[[], object] = lambda: None,
        last_s: float = 0.0,
        *,
        told: Callable[[], object] = lambda: None,
    ) -> None:
        self._last, self._told = last, told
        self.last_s = last_s
        self._disarmed = threading.Event()
        self._waits: list[threading.Event] = []

    def arm(self, limit_s: float, what: str) -> None:
        """Limit the time of ``what``. A limit that was armed before no longer counts."""
        self._disarmed.set()
        self._disarmed = threading.Event()
        self._waits.append(_in_thread(self._wait, self._disarmed, limit_s, what))

    def disarm(self) -> None:
        """Stop the clock, because that part has ended in time."""
        self._disarmed.set()
        while self._waits:
            self._waits.pop().wait(_FLUSH_S)

    def _wait(self, disarmed: threading.Event, limit_s: float, what: str) -> None:
        if disarmed.wait(limit_s):
            return
        log.error("%s took longer than %g s; the process ends by force", what, limit_s)
        dump()
        self._told()
        _in_thread(self._last).wait(self.last_s)
        leave_now(1)


class Signals:
    """Handles SIGTERM and SIGINT, and records which part of the shutdown they have requested.

    Args:
        lame_duck_s: Seconds for which the process continues to serve after SIGTERM before the drain begins.
        heard: Called once, at the first signal; in the main thread, even while a function blocks the loop.
        leave: Called for a signal during the drain (R-026); None leaves that to a supervisor.
        hangup: Called on SIGHUP, which begins the drain; None: SIGHUP is handled as above. If it is set, SIGINT is
            ignored: a terminal sends it also to the parent process, which then ends this one (`invoker.server.reload`).

    Attributes:
        told: Set at the first signal.
        drain: Set when the drain is to begin.
        is_draining: Whether the drain is to begin; set at once, while the loop may set the event later.
    """

    def __init__(
        self,
        lame_duck_s: float,
        *,
        heard: Callable[[], None] = lambda: None,
        leave: Callable[[int], None] | None = None,
        hangup: Callable[[], None] | None = None,
    ) -> None:
        self.told = asyncio.Event()
        self.drain = asyncio.Event()
        self._lame_duck_s = lame_duck_s
        self._heard = heard
        self._leave = leave
        self._hangup = hangup
        self.is_draining = False
        self._is_told = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hangups = Hangups()
        self._waker = Waker()

    def listen(self) -> None:
        """Take the signals from now on; on the loop of the main thread."""
        _HANDS.start()
        self._loop = asyncio.get_running_loop()
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup makes the process ignore the signal
            numbers.append(signal.SIGHUP)
        if self._hangup is not None:
            self._loop.add_signal_handler(signal.SIGINT, lambda: None)
            numbers.remove(signal.SIGINT)
        for number in numbers:
            self._loop.add_signal_handler(number, lambda: None)  # only wakes the loop
            # Python's own handler also runs while a function blocks the loop; a handler of the loop would wait.
            signal.signal(number, self._interrupted)
        self._waker.start(numbers)

    def close(self) -> None:
        """Handle the signals as Python does from now on; in the main thread."""
        self._waker.close()

    def begin(self, *, drain: bool) -> None:
        """Begin to stop; may be called in any thread and in a signal handler.

        Args:
            drain: Whether the drain begins at once, without a lame-duck time.
        """
        is_first = not self._is_told
        begins = (drain or not self._lame_duck_s) and not self.is_draining
        self._is_told = True
        self.is_draining = self.is_draining or begins  # set before `told` wakes the tasks that read it
        if is_first:
            self._heard()
        if begins:
            self._set(self.drain)
        if is_first:
            self._set(self.told)

    def _interrupted(self, number: int, _: FrameType | None) -> None:
        # Logging happens in another thread, since the main thread may hold a lock of the log at this moment.
        if self.is_draining and self._leave is not None and number != signal.SIGHUP:
            _in_thread(self._leave, number)
            return
        if is_replaced := number == signal.SIGHUP and self._hangup is not None:
            self._hangup()
        elif number == signal.SIGHUP and not self._hangups.is_end():
            _in_thread(log.warning, REFUSED)
            return
        self.begin(drain=self._is_told or number == signal.SIGINT or is_replaced)
        if number == signal.SIGINT and self._leave is not None:
            _in_thread(announce, HOW_TO_LEAVE)

    def _set(self, event: asyncio.Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed
            (self._loop or asyncio.get_running_loop()).call_soon_threadsafe(event.set)


class Hangups:
    """Decides whether SIGHUP came because the terminal was closed, which ends the process, or was sent on purpose."""

    def __init__(self) -> None:
        self._had_terminal = _has_terminal()

    def is_end(self) -> bool:
        """Whether the terminal in which the process was started is gone."""
        return self._had_terminal and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def limit_exit(limit_s: float) -> None:
    """Limit the time of the interpreter's exit, with threads and exit handlers of the author's code."""
    with contextlib.suppress(StartupError):  # this process never started such threads
        Guard().arm(max(limit_s, LEAST_S), "the end of the threads and exit handlers that a function has started")


def leave_at_once(number: int) -> None:
    """End the process at a second signal (R-026)."""
    log.warning("a second signal: leaving at once")
    leave_now(128 + number)


def leave_now(code: int) -> None:
    """End the process at once, after writing buffered output within a time limit."""
    _in_thread(_flush).wait(_FLUSH_S)
    os._exit(code)


def dump(tasks: Iterable[asyncio.Task[Any]] = ()) -> None:
    """Log where the process hangs: the stacks of async bodies, then of every thread."""
    told = io.StringIO()
    for task in tasks:
        if task.get_name().startswith("body "):
            task.print_stack(file=told)
    with _memory() as file:  # faulthandler writes only to files, and this file has no slow reader
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        told.write(file.read())
    log.handle(log.makeRecord(log.name, logging.ERROR, __file__, 0, STACKS, (), None, sinfo=told.getvalue().rstrip()))


def _memory() -> IO[str]:
    """A file in memory, if the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stacks"), "w+", errors="replace")
    return tempfile.TemporaryFile("w+", errors="replace")


def listed(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _flush() -> None:
    finish()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # the stream is closed or missing
            stream.flush()
    logging.shutdown()


class _Hands:
    """Threads for the end of the process, started early, since the system may refuse to start a thread then.

    There is one for each task that may run at once: a time limit, leaving, the stop hooks, the output.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[..., object], tuple[Any, ...], threading.Event] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads, unless they were started before.

        Raises:
            StartupError: The system gives no more threads.
        """
        while len(self._threads) < _COUNT:
            thread = threading.Thread(target=self._run, name="invoker-guard", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise StartupError(f"the system gives this process no threads: {error}") from None
            self._threads.append(thread)

    def do(self, work: Callable[..., object], *args: Any) -> threading.Event:
        """Let one of the threads do some work; the returned event is set when it is done.

        A signal handler may call this, too.
        """
        done = threading.Event()
        self._work.put((work, args, done))
        return done

    def stop(self) -> None:
        """Let the threads end, if the process continues."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._work.put(None)
        for one in threads:
            one.join(_FLUSH_S)

    def _run(self) -> None:
        while (got := self._work.get()) is not None:
            work, args, done = got
            try:
                work(*args)
            except Exception:
                log.exception("a part of the end of this process has failed")
            finally:
                done.set()
            del got, work, args, done


_HANDS = _Hands()


def release() -> None:
    """End the threads that were started for the end of the process, which continues without a server."""
    _HANDS.stop()


def _in_thread(work: Callable[..., object], *args: Any) -> threading.Event:
    _HANDS.start()
    return _HANDS.do(work, *args)
