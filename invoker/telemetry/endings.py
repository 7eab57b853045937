"""`Endings`: a thread that writes the log line of each invocation, and other equally frequent lines.

A log line costs as much as a short invocation, and also a lock and a system call. So endings are collected and written
together, a twentieth of a second later; errors, for which a reader may wait, are written at once. Waiting lines are
written when the process stops. If a program has set up logging itself, it gets log records.

An invocation over HTTP ends before its response is made, and the line contains the status of the response. So the line
waits for the response, for a second at most; later lines do not wait for it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from select import PIPE_BUF
from typing import Any, NamedTuple, TypeAlias

import msgspec

from invoker.context import Context
from invoker.core.invocation import Invocation
from invoker.core.peers import Client
from invoker.errors import CallError, FunctionError, InternalError
from invoker.errors.wording import printable
from invoker.message import Headers
from invoker.telemetry import logs

_WAIT_S = 0.05
_PATIENCE_S = 1.0
"""Seconds that a line waits for the response of its invocation."""
_MOST = 100_000
"""How many endings may wait to be written; if there are more, the thread of an ending writes the lines itself."""

_encode = msgspec.json.Encoder().encode


class _Line(NamedTuple):
    """A line of the log: its time, its logger, its message, and the fields of ``extra``."""

    created: float
    logger: str
    message: str
    extra: dict[str, Any]


class _Fault(NamedTuple):
    """A record with a traceback that waits for the response."""

    created: float
    record: logging.LogRecord
    client: Client

    def settled(self) -> logging.LogRecord:
        if self.client.number:
            vars(self.record)[self.client.field] = self.client.number
        return self.record


_Ending: TypeAlias = tuple[
    float, str, str, str, Headers, float, int, int, int, int, tuple[str, str] | None, Context | None, str,
    str | Client,
]  # fmt: skip
"""The parts of an ended invocation's line: time, fields in their order, the error, the trace's context, the client."""


class Endings:
    """Logs endings; the engine calls this object with each invocation that has ended."""

    def __init__(self) -> None:
        self._waiting: deque[_Line | _Ending | _Fault] = deque()
        self._came = threading.Event()
        self._lock = threading.RLock()  # the logging of another program may call `flush` within it
        logs.AHEAD.append(self.flush)
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def __call__(self, invocation: Invocation) -> None:
        """Log one ending. Errors are logged now, with their traceback; other lines may wait and be written together."""
        error = invocation.error
        if isinstance(error, (FunctionError, CallError, InternalError)):
            self._fault(invocation)
            return
        if logs.log.isEnabledFor(logging.INFO):
            context = invocation.context
            # This is made for each call, so it is only a tuple of the data that the line needs later.
            self._put(
                (
                    time.time(), context.invocation_id, context.function, invocation.run, context.metadata,
                    invocation.took_s, invocation.frames_in, invocation.frames_out, invocation.bytes_in,
                    invocation.bytes_out, None if error is None else (error.status.name, str(error)[:500]),
                    context.caller, invocation.protocol, invocation.peer,
                )
            )  # fmt: skip

    def _fault(self, invocation: Invocation) -> None:
        client = invocation.peer
        if isinstance(client, str) or client.number or not client.field:
            logs.log_ending(invocation)
            return
        record = logs.ending_record(invocation)
        if logs.log.isEnabledFor(record.levelno):
            logs.hold(record)
            self._put(_Fault(record.created, record, client))

    def note(self, logger: str, message: str, extra: dict[str, Any]) -> None:
        """Queue a line of any logger, at level INFO.

        Args:
            logger: Name of the logger.
            message: The message as it is written.
            extra: Further fields of the line; they must not change any more.
        """
        if not logs.log.isEnabledFor(logging.INFO):
            return
        self._put(_Line(time.time(), logger, message, extra))

    def _put(self, noted: _Line | _Ending | _Fault) -> None:
        self._waiting.append(noted)
        if self._thread is None:
            self._start()
        if not self._came.is_set():
            self._came.set()
        if self._is_closed or self._thread is None or len(self._waiting) > _MOST:
            self.flush()

    def close(self) -> None:
        """Write the waiting lines, and let the thread end."""
        self._is_closed = True
        if self.flush in logs.AHEAD:
            logs.AHEAD.remove(self.flush)
        self._came.set()
        if self._thread is not None:
            self._thread.join(1.0)
        self.flush()

    def flush(self) -> None:
        """Write the waiting lines, except those that still wait for their response."""
        with self._lock:  # lines must not be interleaved
            made: list[_Line | logging.LogRecord] = []
            unanswered: list[_Line | _Ending | _Fault] = []
            since_s = math.inf if self._is_closed else time.time() - _PATIENCE_S
            while self._waiting:
                noted = self._waiting.popleft()
                client = noted[-1]
                if type(client) is Client and noted[0] > since_s and client.field and not client.number:
                    unanswered.append(noted)
                elif isinstance(noted, _Fault):
                    made.append(noted.settled())
                else:
                    made.append(noted if isinstance(noted, _Line) else _line_of(noted))
            self._waiting.extendleft(reversed(unanswered))
            if made:
                try:
                    _write(made)
                except (OSError, ValueError):  # a text that cannot be encoded, a stream that is closed or full
                    _log(made)  # one by one, so that logging reports the line that cannot be written

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closed:
                thread = threading.Thread(target=self._run, name="invoker-log", daemon=True)
                with contextlib.suppress(RuntimeError):  # the system gives no more threads, so this thread writes
                    thread.start()
                    self._thread = thread

    def _run(self) -> None:
        while not self._is_closed:
            self._came.wait()
            time.sleep(_WAIT_S)
            self._came.clear()
            self.flush()
            if self._waiting:
                self._came.set()


def _line_of(ending: _Ending) -> _Line:
    (
        created, invocation, function, run, metadata, seconds, frames_in, frames_out, bytes_in, bytes_out, error,
        caller, protocol, peer,
    ) = ending  # fmt: skip
    extra: dict[str, Any] = {
        "invocation": invocation,
        **logs.called(protocol, peer),
        "function": function,
        **({"run": run} if run else {}),
        "status": "OK" if error is None else error[0],
        "seconds": round(seconds, 6),
        "frames_in": frames_in,
        "frames_out": frames_out,
        "bytes_in": bytes_in,
        "bytes_out": bytes_out,
        **logs.traced(metadata),
    }
    if caller is not None:
        extra["parent"] = caller.invocation_id
    if error is not None:
        extra["detail"] = error[1]
    return _Line(created, logs.log.name, logs.ENDED, extra)


def _write(noted: list[_Line | logging.LogRecord]) -> None:
    handler = logs.own_handler()
    if handler is None:
        _log(noted)
        return
    line = _json_line if isinstance(handler.formatter, logs.JsonFormatter) else _text_line
    lines = [line(one) if isinstance(one, _Line) else f"{handler.format(one)}\n" for one in noted]
    handler.acquire()
    try:
        for text in _pieces(lines) if logs.LABELS else ["".join(lines)]:
            handler.stream.write(text)
            handler.flush()
    finally:
        handler.release()


def _log(noted: list[_Line | logging.LogRecord]) -> None:
    for one in noted:
        if not isinstance(one, _Line):
            logs.log.handle(one)
            continue
        created, name, message, extra = one
        logger = logging.getLogger(name)
        record = logger.makeRecord(name, logging.INFO, "", 0, message, (), None, extra=extra)
        record.created = created
        logger.handle(record)


def _pieces(lines: list[str]) -> Iterator[str]:
    """Group lines into pieces that a pipe takes atomically, even if other workers write to it (PIPE_BUF)."""
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


def _json_line(line: _Line) -> str:
    stamp = {"time": _utc(line.created), "level": "info", "logger": line.logger, "message": line.message}
    return logs.one_line(_encode(stamp | line.extra | logs.LABELS).decode()) + "\n"


def _utc(seconds: float) -> str:
    """Format a time as `logs.utc` does; cached, since lines that are written together mostly have the same second."""
    return f"{_second(int(seconds))}{int(seconds % 1 * 1000):03d}Z"


@functools.lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return logs.utc(seconds)[:-4]


def _text_line(line: _Line) -> str:
    pairs = " ".join([f"{name}={value}" for name, value in (line.extra | logs.LABELS).items()])
    return printable(f"{logs.local(line.created)} {'INFO':<7} {line.message}  {pairs}") + "\n"
