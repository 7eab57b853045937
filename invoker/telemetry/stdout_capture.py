"""Captures the prints of functions: printing never blocks, and with JSON logs each line becomes an object.

``sys.stdout`` and ``sys.stderr`` stay the same objects, since debuggers and progress bars examine them: only their
``write`` is replaced, and only if they are not a terminal. Output by ``sys.stdout.buffer`` or by another program passes
unchanged.
"""

from __future__ import annotations

import atexit
import json
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

from invoker.context import RUNNING, Context
from invoker.core.invocation import Invocation
from invoker.telemetry import logs
from invoker.telemetry.logwriter import LogWriter, drain_all

_MADE: list[Prints] = []
_LONGEST = 64 * 1024
"""A line of more characters is logged in parts."""


def print_lines(*, as_objects: bool) -> None:
    """Replace ``write`` of the standard streams, so that printing never blocks.

    Args:
        as_objects: Whether to turn each line on standard output into a JSON object; on standard error it stays text.
    """
    handler = logs.own_handler()
    log_writer = handler.stream if handler is not None and isinstance(handler.stream, LogWriter) else None
    for stream, kind, own in ((sys.stdout, Prints if as_objects else Lines, None), (sys.stderr, Lines, log_writer)):
        if stream is not None and not stream.isatty():
            _replace(stream, kind, own or _writer(stream))


def _replace(stream: Any, kind: type[Prints], writer: Any) -> None:
    made = kind(writer.write, writer.flush)
    stream.write, stream.flush = made.write, made.flush
    if not _MADE:
        atexit.register(finish)
    _MADE.append(made)


def _writer(stream: Any) -> Any:
    try:
        made = LogWriter(stream.fileno(), stream.encoding or "utf-8")
    except (AttributeError, OSError, ValueError):  # the stream is not a file, so it is written as before
        return SimpleNamespace(write=stream.write, flush=stream.flush)
    stream.flush()
    made.start()
    return made


def finish() -> None:
    """Write all printed and logged text, at the end of the process.

    It does not wait for a reader that reads nothing.
    """
    for made in _MADE:
        made.finish()
    drain_all()


def ended(invocation: Invocation) -> None:
    """Write the last line that an invocation has printed, even if it is not complete."""
    for made in _MADE:
        made.end(invocation.context)


class Prints:
    """Collects written text until a line is complete.

    Args:
        write: Writes the objects, as text.
        flush: Flushes the stream.
    """

    def __init__(self, write: Any, flush: Any) -> None:
        self._write = write
        self._flush = flush
        self._lock = threading.RLock()
        self._begun: dict[int, tuple[Context | None, str]] = {}  # by thread: the incomplete line, and its invocation

    def write(self, text: str) -> int:
        """Take some text, and return the number of its characters, as every ``write`` does."""
        context, thread = RUNNING.get(), threading.get_ident()
        with self._lock:
            whose, begun = self._begun.pop(thread, (context, ""))
            if whose is not context:
                self._tell(begun, whose)
                begun = ""
            *lines, rest = (begun + text).split("\n")
            if len(rest) > _LONGEST:
                lines.append(rest)
            elif rest:
                self._begun[thread] = context, rest
            for line in lines:
                self._tell(line, context)
        return len(text)

    def flush(self) -> None:
        """Write the incomplete line of this thread, for ``print(..., flush=True)``.

        The following text is another object.
        """
        with self._lock:
            whose, begun = self._begun.pop(threading.get_ident(), (None, ""))
            if begun:
                self._tell(begun, whose, is_whole=False)
        self._flush()

    def end(self, context: Context) -> None:
        """Write the incomplete lines of an invocation, in all threads."""
        if not self._begun:
            return
        with self._lock:
            for thread in [one for one, (whose, _) in self._begun.items() if whose is context]:
                self._tell(self._begun.pop(thread)[1], context)
        self._flush()

    def finish(self) -> None:
        """Write all incomplete lines."""
        with self._lock:
            begun, self._begun = self._begun, {}
            for context, text in begun.values():
                self._tell(text, context)

    def _tell(self, line: str, context: Context | None, *, is_whole: bool = True) -> None:  # noqa: ARG002 - see `Lines`
        made = {"time": logs.utc(time.time()), "level": "info", "logger": "print", "message": line}
        self._write(logs.one_line(json.dumps(made | logs.invoked(context) | logs.LABELS, ensure_ascii=False)) + "\n")


class Lines(Prints):
    """Collects written text until a line is complete, and passes the line on unchanged."""

    def _tell(self, line: str, context: Context | None, *, is_whole: bool = True) -> None:  # noqa: ARG002 - see `Prints`
        self._write(f"{line}\n" if is_whole else line)
