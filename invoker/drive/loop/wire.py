"""`Wire`: what a transport offers to a conversation on the loop."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Wire"]


class Wire(Protocol):
    """A transport's side of one conversation; nothing of it waits but `room`."""

    is_gone: bool

    def accepted(self) -> None:
        """The first invocation was admitted: whatever can be told to the peer now, is (R-133)."""

    def ask(self) -> None:
        """More frames are wanted, after `arrived` said that none was."""

    def write(self, frame: Any) -> bool:
        """Send one frame, behind the headers; False when the next one should wait for `room`."""

    async def room(self) -> None:
        """Wait until a frame may be written."""
