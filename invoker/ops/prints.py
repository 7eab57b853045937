"""What functions print, as log lines: with JSON logs each printed line becomes an object on standard output.

``sys.stdout`` stays the object that it is, since debuggers and progress bars ask it what it is and where it writes:
only its ``write`` is replaced, and only where no terminal reads it. What goes around it, by ``sys.stdout.buffer`` or by
another program, passes unchanged, as everything does with text logs.
"""

from __future__ import annotations

import atexit
import json
import sys
import threading
import time
from typing import Any

from invoker.context import RUNNING, Context
from invoker.core.invocation import Invocation
from invoker.ops import logs

__all__ = ["Prints", "ended", "print_objects"]

_MADE: list[Prints] = []
_LONGEST = 64 * 1024
"""A line that goes on longer is told in parts."""


def print_objects() -> None:
    """From now on, turn each printed line into a JSON object."""
    stdout: Any = sys.stdout
    if stdout is not None and not stdout.isatty():
        made = Prints(stdout.write, stdout.flush)
        stdout.write, stdout.flush = made.write, made.flush
        _MADE.append(made)
        atexit.register(made.finish)


def ended(invocation: Invocation) -> None:
    """Write what an invocation printed last, even if it did not end the line."""
    for made in _MADE:
        made.end(invocation.context)


class Prints:
    """Collects what is written until a line is whole.

    Args:
        write: Takes the objects, as text.
        flush: Passes them on.
    """

    def __init__(self, write: Any, flush: Any) -> None:
        self._write = write
        self._flush = flush
        self._lock = threading.RLock()
        self._begun: dict[int, tuple[Context | None, str]] = {}  # by thread: the begun line, and its invocation

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
        """Write what this thread has begun, as ``print(..., flush=True)`` asks. What follows is another object."""
        with self._lock:
            whose, begun = self._begun.pop(threading.get_ident(), (None, ""))
            if begun:
                self._tell(begun, whose)
        self._flush()

    def end(self, context: Context) -> None:
        """Write the lines that an invocation has begun, in any thread."""
        if not self._begun:
            return
        with self._lock:
            for thread in [one for one, (whose, _) in self._begun.items() if whose is context]:
                self._tell(self._begun.pop(thread)[1], context)
        self._flush()

    def finish(self) -> None:
        """Write the lines that have not ended."""
        with self._lock:
            begun, self._begun = self._begun, {}
            for context, text in begun.values():
                self._tell(text, context)

    def _tell(self, line: str, context: Context | None) -> None:
        made = {"time": logs.utc(time.time()), "level": "info", "logger": "print", "message": line}
        self._write(json.dumps(made | logs.invoked(context) | logs.LABELS, ensure_ascii=False) + "\n")
