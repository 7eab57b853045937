"""`Endings`: the log line of each invocation, written by a thread of its own.

A log line costs as much as a short invocation, and a lock and a system call besides. So endings are collected as they
come and written together, a twentieth of a second later; those of faults, which somebody may be waiting to read, are
written at once. What waits is written when the process stops. A program that has set up logging itself gets records.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from select import PIPE_BUF
from typing import Any

import msgspec

from invoker.core.invocation import Invocation
from invoker.errors import CallError, FunctionError, InternalError
from invoker.ops import logs

__all__ = ["Endings"]

_WAIT_S = 0.05
_MOST = 100_000
"""Endings that may wait to be written; beyond, whoever ends writes its own."""

_encode = msgspec.json.Encoder().encode


class Endings:
    """Observes the engine; call it with each invocation that has ended."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, dict[str, Any]]] = deque()
        self._came = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def __call__(self, invocation: Invocation) -> None:
        """Note one ending."""
        error = invocation.error
        if isinstance(error, (FunctionError, CallError, InternalError)):
            logs.log_ending(invocation)
            return
        if not logs.log.isEnabledFor(logging.INFO):
            return
        self._waiting.append((time.time(), logs.ending(invocation)))
        if self._thread is None:
            self._start()
        if not self._came.is_set():
            self._came.set()
        if self._is_closed or len(self._waiting) > _MOST:
            self.flush()

    def close(self) -> None:
        """Write what waits, and let the thread end."""
        self._is_closed = True
        self._came.set()
        if self._thread is not None:
            self._thread.join(1.0)
        self.flush()

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:  # lines must not be mixed up
            made = []
            while self._waiting:
                made.append(self._waiting.popleft())
            if made:
                try:
                    _write(made)
                except (OSError, ValueError):  # a text that cannot be encoded, a stream that is closed or full
                    _log(made)  # one by one; logging reports what cannot be written

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="invoker-log", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            self._came.wait()
            time.sleep(_WAIT_S)
            self._came.clear()
            self.flush()


def _write(endings: list[tuple[float, dict[str, Any]]]) -> None:
    handler = logs.own_handler()
    if handler is None:
        _log(endings)
        return
    line = _json_line if isinstance(handler.formatter, logs.JsonFormatter) else _text_line
    lines = [line(created, extra) for created, extra in endings]
    handler.acquire()
    try:
        for text in _pieces(lines) if logs.LABELS else ["".join(lines)]:
            handler.stream.write(text)
            handler.flush()
    finally:
        handler.release()


def _log(endings: list[tuple[float, dict[str, Any]]]) -> None:
    for created, extra in endings:
        record = logs.log.makeRecord(logs.log.name, logging.INFO, "", 0, logs.ENDED, (), None, extra=extra)
        record.created = created
        logs.log.handle(record)


def _pieces(lines: list[str]) -> Iterator[str]:
    """The lines, joined as far as a pipe takes them whole while other workers write to it too (PIPE_BUF)."""
    piece: list[str] = []
    size = 0
    for line in lines:
        length = len(line.encode())
        if piece and size + length > PIPE_BUF:
            yield "".join(piece)
            piece, size = [], 0
        piece.append(line)
        size += length
    yield "".join(piece)


def _json_line(created: float, extra: dict[str, Any]) -> str:
    stamp = {"time": logs.utc(created), "level": "info", "logger": logs.log.name, "message": logs.ENDED}
    return _encode(stamp | extra | logs.LABELS).decode() + "\n"


def _text_line(created: float, extra: dict[str, Any]) -> str:
    pairs = " ".join([f"{name}={value}" for name, value in (extra | logs.LABELS).items()])
    return f"{logs.local(created)} {'INFO':<7} {logs.ENDED}  {pairs}\n"
