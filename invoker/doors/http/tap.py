"""`Tap`: stops reading from a connection, and goes on, each once."""

from __future__ import annotations

import asyncio

__all__ = ["Tap"]


class Tap:
    """The reading end of one connection.

    Args:
        transport: Of the connection.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_shut = False

    def shut(self) -> None:
        """Read no more for now."""
        if not self._is_shut and not self._transport.is_closing():
            self._is_shut = True
            self._transport.pause_reading()

    def open(self) -> None:
        """Read again."""
        if self._is_shut and not self._transport.is_closing():
            self._is_shut = False
            self._transport.resume_reading()
