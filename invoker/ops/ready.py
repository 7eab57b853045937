"""What a process says when it is ready: printed at every log level, since whoever started it waits for it (R-016)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from invoker.ops.logs import BELOW

__all__ = ["announce", "ready_block"]

log = logging.getLogger(__name__)

_MOST_NAMES = 5


def announce(block: str) -> None:
    """Log a message at INFO even if the level of the log is higher.

    Args:
        block: The message; then lines ``key: value``, which stand below it in text, and are fields in JSON.
    """
    line, *below = block.split("\n")
    fields = dict(one.split(": ", 1) for one in below)
    log.handle(log.makeRecord(log.name, logging.INFO, __file__, 0, "%s", (line,), None, extra={BELOW: fields}))


def ready_block(names: Sequence[str], addresses: str, serves: str, command: str, page: str = "") -> str:
    """The message of a process that is ready, and what stands below it (R-005).

    Args:
        names: Of the functions.
        addresses: Of the open doors, and why they are these.
        serves: Protocols.
        command: Of a call to copy; may be empty.
        page: Where a browser can try the functions; may be empty.
    """
    shown = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    lines = [f"ready: {shown}{more} on {addresses}", f"serves: {serves}"]
    if command:
        lines.append(f"try: python -m invoker {command}")
    if page:
        lines.append(f"page: {page}")
    return "\n".join(lines)
