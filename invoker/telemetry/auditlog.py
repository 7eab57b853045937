"""`AuditLog`: a file, or standard error, to which a thread appends lines.

A caller only puts an event on a queue; the thread turns events into lines, and writes the lines of a twentieth of a
second together. A file that was moved or deleted, as by logrotate, is opened again. Lines that cannot be written, or do
not fit on the queue, are lost and counted: calls never wait for a disk.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from select import PIPE_BUF
from typing import Any, Final

log = logging.getLogger(__name__)

_WAIT_S: Final = 0.05
_MOST: Final = 100_000
_END_S: Final = 1.0
_MODE: Final = 0o600


class AuditLog:
    """Appends lines.

    Args:
        target: Path of a file, or ``stderr``.
        line: Makes the line of an event, in the writing thread.

    Attributes:
        errors: How many lines were lost.
        is_well: Whether the last lines were written; None before the first lines.
    """

    def __init__(self, target: str, line: Callable[[Any], bytes]) -> None:
        self.errors = 0
        self.is_well: bool | None = None
        self._path = "" if target == "stderr" else target
        self._line = line
        self._file = -1
        self._waiting: deque[Any] = deque()
        self._came = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def put(self, told: Any) -> None:
        """Queue an event to be written, from any thread; returns at once."""
        if len(self._waiting) >= _MOST:
            self._lost(1, "too many lines wait to be written")
            return
        self._waiting.append(told)
        if self._thread is None:
            self._start()
        if not self._came.is_set():
            self._came.set()
        if self._thread is None:
            self.flush()

    def flush(self) -> None:
        """Write all lines that wait, in the calling thread."""
        with self._lock:  # lines must not be interleaved
            lines = []
            for _ in range(len(self._waiting)):
                told = self._waiting.popleft()
                try:
                    lines.append(self._line(told))
                except Exception:
                    log.exception("a line of the audit log could not be made")
                    self._lost(1, "it could not be made")
            if lines:
                self._write(lines)

    def close(self) -> None:
        """Write the waiting lines, and let the thread end; does not wait for a blocked output."""
        self._is_closed = True
        self._came.set()
        if self._thread is not None:
            self._thread.join(_END_S)
            if self._thread.is_alive():
                log.error("lines of the audit log are lost: its output cannot be written")
                return
        self.flush()
        with self._lock:
            self._close_file()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closed:
                thread = threading.Thread(target=self._run, name="invoker-audit", daemon=True)
                with contextlib.suppress(RuntimeError):  # the system gives no more threads, so this thread writes
                    thread.start()
                    self._thread = thread

    def _run(self) -> None:
        while not self._is_closed:
            self._came.wait()
            time.sleep(_WAIT_S)  # lines that come meanwhile are written by the same system call
            self._came.clear()
            self.flush()

    # These methods are called with the lock held.

    def _write(self, lines: Sequence[bytes]) -> None:
        written = 0
        try:
            handle = self._open()
            for piece in _pieces(lines) if not self._path else [lines]:
                _write_all(handle, b"".join(piece))
                written += len(piece)
        except OSError as error:
            self._close_file()
            self._lost(len(lines) - written, str(error))
        else:
            self.is_well = True

    def _open(self) -> int:
        """The descriptor of the file, opened again if the name now belongs to another file, or to none."""
        if not self._path:
            return 2
        if self._file >= 0 and not _is_same(self._path, self._file):
            self._close_file()
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        return self._file

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lost(self, count: int, why: str) -> None:
        if self.is_well is not False:
            log.error("lines of the audit log are lost: %s", why)
        self.is_well = False
        self.errors += count


def _is_same(path: str, handle: int) -> bool:
    try:
        named = Path(path).stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(handle))


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _pieces(lines: Sequence[bytes]) -> list[list[bytes]]:
    """Group lines into pieces that a pipe takes atomically, even if other processes write to it (PIPE_BUF)."""
    pieces: list[list[bytes]] = []
    size = PIPE_BUF
    for line in lines:
        if size + len(line) > PIPE_BUF:
            pieces.append([])
            size = 0
        pieces[-1].append(line)
        size += len(line)
    return pieces
