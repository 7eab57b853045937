"""Formats log lines: as text on a terminal, otherwise as one JSON object a line; with the fields of ``extra``."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from invoker.author.signature import layers
from invoker.context import RUNNING, Context
from invoker.core.invocation import Invocation
from invoker.core.peers import Client
from invoker.errors import CallError, EncodeError, FunctionError, InternalError, Status, UnacceptedType
from invoker.errors.wording import printable, traceback_of
from invoker.message import EMPTY, Headers
from invoker.telemetry.logwriter import LogWriter
from invoker.traces import request_id_of, trace_id_of

log = logging.getLogger("invoker")

ENDED = "invocation ended"

BELOW = "invoker_below"
"""The attribute of a record with pairs that are written below the message in text, and as fields in JSON."""

LABELS: dict[str, Any] = {}
"""The fields that every line of this process contains."""

AHEAD: list[Callable[[], None]] = []
"""Functions that are called before any line is written; each writes its own waiting lines first."""

_LOUD = ("asyncio", "watchfiles")
"""Libraries that the invoker uses and that log their work at INFO and DEBUG."""

_CYAN = "36"
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029]")
_COLOURS = {logging.INFO: "32", logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31"}

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up(level: str, style: str, *, stream: TextIO | None = None) -> bool:
    """Send log lines to a stream; returns whether they are text.

    Args:
        level: debug, info, warning or error; then levels of loggers, as in ``info,myapp=debug``.
        style: text, json, or auto: text when the stream is a terminal.
        stream: The stream; None: standard error.
    """
    shown = stream or sys.stderr
    is_text = style == "text" or (style == "auto" and shown is not None and shown.isatty())
    handler = OwnHandler(stream or _writer(is_text=is_text))
    handler.setFormatter(TextFormatter(has_colour=_has_colour(shown)) if is_text else JsonFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        if isinstance(old, OwnHandler):
            old.end()
    if _own[0] in log.handlers:
        log.removeHandler(_own[0])
        log.propagate = True
    root.addHandler(handler)
    _own[0] = handler
    first, *others = level.split(",")
    root.setLevel(first.upper())  # the level also applies to the log of the author's code
    log.setLevel(first.upper())
    for name in _LOUD:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name, _, one in (other.rpartition("=") for other in others):
        logging.getLogger(name).setLevel(one.upper())
    return is_text


@contextlib.contextmanager
def borrowed(level: str, style: str) -> Iterator[None]:
    """Send log lines to standard error for a while, if logging is not configured in this process.

    Args:
        level: As for `set_up`.
        style: As for `set_up`.
    """
    root = logging.getLogger()
    if root.handlers:
        yield
        return
    names = (*_LOUD, *(one.rpartition("=")[0] for one in level.split(",")[1:]))
    loggers = [root, log, *map(logging.getLogger, names)]
    levels, handler = [one.level for one in loggers], _own[0]
    set_up(level, style)
    ours = _own[0]
    try:
        yield
    finally:
        assert ours is not None
        root.removeHandler(ours)
        ours.end()
        _own[0] = handler
        for one, before in zip(loggers, levels, strict=True):
            one.setLevel(before)


class OwnHandler(logging.StreamHandler[Any]):
    """Writes our lines; if a record cannot be made into a line, writes a line about that."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        if isinstance(stream, LogWriter):
            stream.lost = self._dropped

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a line, after the earlier ones."""
        for write in tuple(AHEAD):
            write()
        return super().handle(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging calls it
        """Log the place where the record was made, and the error in it."""
        text = "a line of the log cannot be written: %.200r, at %s:%s"
        place = (record.pathname, record.lineno)
        told = log.makeRecord(__name__, logging.WARNING, *place, text, (record.msg, *place), sys.exc_info())
        with contextlib.suppress(Exception):  # the stream itself fails, and there is no other
            self.stream.write(self.format(told) + self.terminator)

    def close(self) -> None:
        """Wait until the logged lines are written; does not wait for a blocked output."""
        if isinstance(self.stream, LogWriter):
            self.stream.drain()
        super().close()

    def end(self) -> None:
        """Write the logged lines, and end the writer's thread."""
        if isinstance(self.stream, LogWriter):
            self.stream.end()

    def _dropped(self, count: int) -> str:
        text = "%d lines of the log were dropped here, because their reader did not keep up"
        return self.format(log.makeRecord(__name__, logging.WARNING, __file__, 0, text, (count,), None)) + "\n"


def _writer(*, is_text: bool) -> Any:
    """A writer to standard error that never blocks; the stream itself if it has no descriptor."""
    stream = sys.stderr
    try:
        descriptor = -1 if stream is None else stream.fileno()
    except (AttributeError, OSError, ValueError):  # a program, or a notebook, has replaced standard error
        return stream
    made = LogWriter(descriptor, (getattr(stream, "encoding", "") if is_text else "") or "utf-8")
    made.start()
    return made


def _has_colour(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal, and its user has not asked for plain text (no-color.org)."""
    return (
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record; with those of the invocation if the code of a function logs it."""
    return invoked(RUNNING.get()) | {name: value for name, value in vars(record).items() if name not in _OWN} | LABELS


def invoked(context: Context | None) -> dict[str, Any]:
    """The fields that identify the invocation of a line; none without an invocation."""
    if context is None:
        return {}
    return {"invocation": context.invocation_id, "function": context.function} | traced(context.metadata)


_told: tuple[Headers, dict[str, str]] = EMPTY, {}
"""The last metadata that was not empty, and its fields."""


def traced(metadata: Headers) -> dict[str, str]:
    """The fields of the caller's trace, if it sends one (W3C Trace Context), and of its request id."""
    global _told  # noqa: PLW0603 - calls with the same head share their metadata
    if not metadata:
        return {}
    known, fields = _told
    if known is not metadata:
        fields = {}
        if found := trace_id_of(metadata):
            fields["trace"] = found
        if sent := request_id_of(metadata):
            fields["request_id"] = sent
        _told = metadata, fields
    return fields


class TextFormatter(logging.Formatter):
    """``12:00:00.123 WARNING message  invocation=i7 function=square``, then a traceback if there is one.

    Args:
        has_colour: Whether levels and the lines below a message are coloured.
    """

    def __init__(self, *, has_colour: bool = False) -> None:
        super().__init__()
        self._has_colour = has_colour

    def format(self, record: logging.LogRecord) -> str:
        """Render one line, or a block."""
        extra = _extra(record)
        below = extra.pop(BELOW, {})
        pairs = " ".join(f"{name}={value}" for name, value in extra.items())
        line = printable(f"{record.getMessage()}  {pairs}" if pairs else record.getMessage())
        line = (
            f"{local(record.created)} {self._coloured(f'{record.levelname:<7}', _COLOURS.get(record.levelno))} {line}"
        )
        for name, value in below.items():
            line += f"\n    {name}: {self._coloured(printable(value), _CYAN if name in ('try', 'page') else None)}"
        if record.stack_info:
            line += "".join(f"\n  {printable(one)}" for one in record.stack_info.splitlines())
        if not record.exc_info:
            return line
        # Lines of a traceback are indented, so a caller that controls the text of an exception cannot forge a log line.
        return "\n".join([line, *("  " + printable(one) for one in _traceback(record).split("\n"))])

    def _coloured(self, text: str, colour: str | None) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._has_colour and colour else text


class JsonFormatter(logging.Formatter):
    """One JSON object: time, level, logger, message, then the fields of ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON, without its end; the keys are in the reference of logs."""
        extra = _extra(record)
        made: dict[str, Any] = {
            "time": utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **extra.pop(BELOW, {}),
            **extra,
        }
        if record.stack_info:
            made["stacks"] = record.stack_info
        if record.exc_info:
            made["traceback"] = _traceback(record)
        return one_line(json.dumps(made, default=str, ensure_ascii=False))


def _traceback(record: logging.LogRecord) -> str:
    exc_info: Any = record.exc_info
    error, frames = exc_info[1:] if isinstance(exc_info, tuple) else (exc_info, exc_info)
    if record.exc_text and error is not None and frames is None:
        return record.exc_text  # see `hold`
    return traceback_of(error).rstrip("\n") if isinstance(error, BaseException) else "NoneType: None"


def one_line(text: str) -> str:
    """Escape characters of JSON that readers treat as the end of a line, or terminals as a command."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def local(seconds: float) -> str:
    """The local time of day, with milliseconds."""
    return time.strftime("%H:%M:%S", time.localtime(seconds)) + f".{int(seconds % 1 * 1000):03d}"


def utc(seconds: float) -> str:
    """Date and time in UTC as RFC 3339 writes them, with milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def own_handler() -> OwnHandler | None:
    """The handler that `set_up` made, if it is the only handler for the invoker's lines."""
    handlers = [*log.handlers, *(logging.getLogger().handlers if log.propagate else ())]
    return _own[0] if handlers == [_own[0]] else None


def keep() -> None:
    """Restore the invoker's logging, if the author's code has set up logging meanwhile.

    `logging.config` disables every logger that its settings do not name, and removes the handlers of the root logger.
    The log records of the author's code still go to the author's handlers.
    """
    if _own[0] is None:
        return
    for name, one in list(logging.root.manager.loggerDict.items()):
        if isinstance(one, logging.Logger) and name.partition(".")[0] in (log.name, *_LOUD):
            one.disabled = False
    if _own[0] not in logging.getLogger().handlers and not log.handlers:
        log.addHandler(_own[0])
        log.propagate = False


_own: list[OwnHandler | None] = [None]


def called(protocol: str, peer: str | Client) -> dict[str, Any]:
    """The fields of the caller and the protocol, and the status that an HTTP client got, if it is known."""
    if isinstance(peer, str):
        return {"protocol": protocol, "peer": peer} if peer else {"protocol": protocol}
    fields = {"protocol": protocol, "peer": peer.address, peer.field: peer.number}
    return {name: value for name, value in fields.items() if name and value}


def ending(invocation: Invocation) -> dict[str, Any]:
    """The fields of the log line of an ended invocation."""
    error = invocation.error
    extra: dict[str, Any] = {
        "invocation": invocation.id,
        **called(invocation.protocol, invocation.peer),
        "function": invocation.function.spec.name,
        **({"run": str(invocation.run)} if invocation.run else {}),
        "status": (error.status if error is not None else Status.OK).name,
        "seconds": round(invocation.took_s, 6),
        "frames_in": invocation.frames_in,
        "frames_out": invocation.frames_out,
        "bytes_in": invocation.bytes_in,
        "bytes_out": invocation.bytes_out,
        **traced(invocation.context.metadata),
    }
    if invocation.context.caller is not None:
        extra["parent"] = invocation.context.caller.invocation_id
    if error is not None:
        extra["detail"] = str(error)[:500]
    return extra


def place_of(function: Any) -> str:
    """``file:line`` of the author's function; empty if it has no source."""
    code = getattr(list(layers(function))[-1], "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def log_ending(invocation: Invocation) -> None:
    """Log the ending of an invocation now."""
    record = ending_record(invocation)
    if log.isEnabledFor(record.levelno):
        log.handle(record)


def ending_record(invocation: Invocation) -> logging.LogRecord:
    """One line for each ending; a function's own exception is a WARNING with its traceback, once (R-117)."""
    extra, error = ending(invocation), invocation.error
    level, text = logging.INFO, ENDED
    cause = error.__cause__ if error is not None else None
    if isinstance(error, EncodeError) and not isinstance(error, UnacceptedType):
        extra["where"] = place_of(invocation.function.hooks.target)
        level, text = logging.WARNING, f"{ENDED}: what the function gave cannot be sent"
    elif isinstance(error, (FunctionError, CallError)) and cause is not None:
        bare = [one.name for one in invocation.function.spec.inputs if one.type is Any]
        if isinstance(cause, TypeError) and "str" in str(cause) and bare:
            extra["hint"] = f"'{bare[0]}' has no annotation, so text arrives as a str; annotate it: {bare[0]}: float"
        level, text = logging.WARNING, f"{ENDED}: the function raised"
    elif isinstance(error, InternalError):
        level, text = logging.ERROR, f"{ENDED}: a defect of the invoker"
    exc_info = (type(cause), cause, cause.__traceback__) if level == logging.WARNING and cause is not None else None
    return log.makeRecord(log.name, level, __file__, 0, text, (), exc_info, extra=extra)


def hold(record: logging.LogRecord) -> None:
    """Prepare a record for later writing: keep the text of its traceback, not the objects in its frames."""
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = _traceback(record)
        record.exc_info = (type(record.exc_info[1]), record.exc_info[1], None)
