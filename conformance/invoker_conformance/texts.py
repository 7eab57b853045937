"""How reports show bytes: as text, cut where they are long."""

from __future__ import annotations

__all__ = ["preview"]

_SHOWN_BYTES = 48


def preview(payload: bytes) -> str:
    """A payload cut to one short line, with its size if cut."""
    if len(payload) <= _SHOWN_BYTES:
        return repr(payload)[1:]
    return f"{repr(payload[:_SHOWN_BYTES])[1:]}... ({len(payload)} bytes)"
