"""Shows bytes and lists in reports, as shortened text."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN_BYTES = 48


def listed(texts: Sequence[str], noun: str) -> str:
    """The number of texts, with the first five."""
    head = ", ".join(texts[:5]) + (", ..." if len(texts) > 5 else "")
    return f"{len(texts)} {noun}{'' if len(texts) == 1 else 's'}" + (f" [{head}]" if texts else "")


def preview(payload: bytes) -> str:
    """A payload as one short line, with its size if it was cut."""
    if len(payload) <= _SHOWN_BYTES:
        return repr(payload)[1:]
    return f"{repr(payload[:_SHOWN_BYTES])[1:]}... ({len(payload)} bytes)"
