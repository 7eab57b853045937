"""Logs the message of a ready process, at every log level, since the program that started it waits for it (R-016)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from invoker.author.spec import FunctionSpec, Take
from invoker.codecs.typed import is_any
from invoker.telemetry.logs import BELOW

log = logging.getLogger(__name__)

_MOST_NAMES = 5


def announce(block: str) -> None:
    """Log a message at INFO even if the level of the log is higher.

    Args:
        block: The message, followed by lines ``key: value``, which are written below it in text, and as fields in JSON.
    """
    line, *below = block.split("\n")
    fields = dict(one.split(": ", 1) for one in below)
    log.handle(log.makeRecord(log.name, logging.INFO, __file__, 0, "%s", (line,), None, extra={BELOW: fields}))


def untyped(specs: Iterable[FunctionSpec]) -> str:
    """A sentence for authors about parameters without a type; empty if all have one."""
    for spec in specs:
        for one in (*spec.inputs, *spec.spare):
            if is_any(one.type) and one.take is Take.PAYLOAD:
                return (
                    f"'{one.name}' of {spec.name} has no type, so text arrives as a str; annotate it "
                    f"({one.name}: float), or send JSON (call --json, Content-Type: application/json)"
                )
    return ""


def ready_block(names: Sequence[str], addresses: str, serves: str, command: str, page: str = "", note: str = "") -> str:
    """Make the message of a process that is ready, with the lines below it (R-005).

    Args:
        names: The names of the functions.
        addresses: The addresses of the open transports, and the reason for these addresses.
        serves: The names of the served protocols.
        command: An example of a command line that calls a function; may be empty.
        page: The URL of a page for trying the functions; may be empty.
        note: Advice for the author, as from `untyped`; may be empty.
    """
    shown = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    lines = [f"ready: {shown}{more} on {addresses}", f"serves: {serves}"]
    if command:
        lines.append(f"try: python -m invoker {command}")
    if page:
        lines.append(f"page: {page}")
    if note:
        lines.append(f"note: {note}")
    return "\n".join(lines)
