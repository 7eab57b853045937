"""`LogWriter`: a stream for the log whose `write` never blocks, even if its reader is slow.

The reader of a pipe or a terminal may stop reading; a process that waits for it serves no calls, and handles no
signals. So text is written at once only if there is room for much more. Otherwise it goes on a queue, and a thread
writes it in its order. Lines that do not fit on the queue are dropped and counted, and a line with the count replaces
them::

    write() --nothing waits, and there is room--------------> the descriptor
       +-- there is none --> queue --the thread-------------> the descriptor
       +-- nor on the queue --> counted, and a line says so as soon as there is room
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import sys
import termios
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

_MOST: Final = 8 * 1024 * 1024
"""How many characters may wait."""

_END_S: Final = 5.0
"""The most seconds that the end of the process waits for a reader."""

_GAP: Final = ""
"""Marks the place on the queue at which lines were dropped."""

_STILL_S: Final = 1.0
"""Seconds that the thread waits for a reader that reads nothing."""


class LogWriter:
    """Writes text to a file descriptor, from a thread of its own.

    Args:
        descriptor: The file descriptor, which stays open; a negative one drops all text.
        encoding: The encoding of the text; characters that it cannot express are escaped.
        most: How many characters may wait.

    Attributes:
        encoding: The encoding of the text.
        dropped: How many lines were dropped since the start.
        lost: Makes the line with the number of dropped lines.
    """

    def __init__(self, descriptor: int, encoding: str = "utf-8", *, most: int = _MOST) -> None:
        self.encoding = encoding
        self.dropped = 0
        self.lost: Callable[[int], str] = str
        self._descriptor = descriptor
        self._most = most
        self._told = 0  # how many of the dropped lines were reported
        self._put = self._written = 0  # characters; the first changes with the lock held, the second in the thread
        self._lock = threading.RLock()  # a signal handler may log while its thread holds it
        self._has_gap = self._is_ending = False
        self._is_direct = True
        self._kind = stat.S_IFMT(os.fstat(descriptor).st_mode) if descriptor >= 0 else 0
        self._queue: SimpleQueue[str | threading.Event] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._full = _full(descriptor) if self._kind == stat.S_IFIFO else 0
        _MADE.add(self)

    def start(self) -> None:
        """Start the thread, if a write could block.

        If no thread can be started, every write is direct.
        """
        if not (self._kind in (stat.S_IFIFO, stat.S_IFSOCK) or os.isatty(self._descriptor)):
            return
        thread = threading.Thread(target=self._run, name="invoker-log-writer", daemon=True)
        with contextlib.suppress(RuntimeError):
            thread.start()
            self._thread, self._is_direct = thread, False

    def write(self, text: str) -> int:
        """Take text that ends with a complete line; returns at once."""
        with self._lock:
            if self._is_direct or (
                self._put == self._written and len(text) <= select.PIPE_BUF and not self._has_gap and self._has_room()
            ):
                self._write(text)
            elif self._put - self._written > self._most:
                self.dropped += text.count("\n")
                self._has_gap = True
            elif text:
                if self._has_gap:
                    self._has_gap = False
                    self._queue.put(_GAP)
                self._put += len(text)
                self._queue.put(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing, so that no logging thread waits. `drain` waits."""

    def fileno(self) -> int:
        """The descriptor to which lines are written."""
        return self._descriptor

    def drain(self, limit_s: float = _END_S) -> bool:
        """Wait until everything has been written, and return whether it was.

        It does not wait for a reader that reads nothing.
        """
        if self._is_direct:
            return True
        done = threading.Event()
        self._queue.put(done)
        until, written = time.monotonic() + limit_s, -1
        while self._written != written and time.monotonic() < until:
            written = self._written
            if done.wait(min(limit_s, _STILL_S)):
                return True
        return False

    def end(self) -> None:
        """Write the waiting text, and end the thread; gives up if the reader reads nothing.

        Later text is written directly.
        """
        self._is_ending = True
        if self.drain() and self._thread is not None:
            self._thread.join(_STILL_S)

    def after_fork(self) -> None:
        """Reset in a forked process, which has no thread: write directly, and drop the parent's text."""
        self._is_direct, self._lock, self._queue = True, threading.RLock(), SimpleQueue()

    def _has_room(self) -> bool:
        """Whether a short text can be written at once, even while other processes write to it, too."""
        try:
            if self._kind == stat.S_IFIFO:
                waits = fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0\0\0\0")
                return int.from_bytes(waits, sys.byteorder) < self._full
            return bool(select.select([], [self._descriptor], [], 0)[1])
        except OSError:
            return False

    # These methods run in the thread, or while its queue is empty.

    def _run(self) -> None:
        queue, kept = self._queue, ""
        while True:
            one = queue.get()
            while isinstance(one, str) and one != _GAP:
                # a pipe takes this many bytes atomically, even if other processes write to it
                if len(kept) + len(one) > select.PIPE_BUF:
                    self._take(kept)
                    kept = ""
                kept += one
                try:
                    one = queue.get_nowait()
                except Empty:
                    break
            is_well = self._take(kept)
            kept = ""
            if is_well and (one == _GAP or queue.empty()):
                self._tell_dropped()
            if isinstance(one, threading.Event):
                if self._is_ending:
                    self._is_direct = True
                    one.set()
                    return
                one.set()

    def _take(self, text: str) -> bool:
        is_well = self._write(text)
        self._written += len(text)
        return is_well

    def _tell_dropped(self) -> None:
        count = self.dropped - self._told
        if count and self._write(self.lost(count)):
            self._told += count

    def _write(self, text: str) -> bool:
        if self._descriptor < 0:
            return True
        view = memoryview(text.encode(self.encoding, "backslashreplace"))
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:  # other code has made the descriptor non-blocking
                select.select([], [self._descriptor], [], 1)
            except OSError:  # the pipe is full or has lost its reader, so no line about this can be written
                self.dropped += text.count("\n")
                return False
        return True


def _full(pipe: int) -> int:
    """The most bytes in a pipe that still has room for a dozen short texts, each on a page of its own."""
    try:
        size = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    except (AttributeError, OSError):  # not on Linux
        return 0
    return size // 8 if size >= 16 * select.PIPE_BUF else 0


def drain_all() -> None:
    """Wait until the text that this process has logged and printed is written."""
    for one in list(_MADE):
        one.drain()


def dropped_lines() -> int:
    """How many lines of its log and of the output of functions this process has dropped."""
    return sum(one.dropped for one in list(_MADE))


def _after_fork() -> None:
    for one in list(_MADE):
        one.after_fork()


_MADE: weakref.WeakSet[LogWriter] = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork)
