"""What a protocol offers to the house: a `Session` that translates one wire conversation.

A session is pure: it never waits, opens no socket, starts no thread, imports neither asyncio nor grpc. It is given
frames and events and answers with steps, in the order in which they shall be done. So every rule of a protocol is
tested by calling a method and comparing a list, and every door (asyncio, a plain thread, a test) drives the same
code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from invoker.core.steps import Event, Step

__all__ = ["Session"]


class Session(Protocol):
    """One wire conversation of one protocol."""

    def receive(self, frame: Any) -> Iterable[Step]:
        """Translate one frame of the peer.

        Raises:
            ProtocolViolation: The frame breaks the protocol; nothing else is ever raised.
        """

    def half_close(self) -> Iterable[Step]:
        """Translate the normal end of the peer's frames.

        Raises:
            ProtocolViolation: The peer may not end here.
        """

    def deliver(self, event: Event) -> Iterable[Step]:
        """Translate an event of one of this session's invocations into frames."""
