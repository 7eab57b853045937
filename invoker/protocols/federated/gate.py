"""`Gate`: how many bytes of reports may be under way at once, whatever clients do (F-081).

A large message needs room from its first chunk until it is complete, and a report until its round has taken it. Those
that find none wait in a line; the first of it goes on when there is room again. One message is let in always, however
large it is. Small messages need no room: there are at most as many as conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

__all__ = ["SMALL_BYTES", "Gate"]

SMALL_BYTES: Final = 64 * 1024

K = TypeVar("K", bound=Hashable)


class Gate(Generic[K]):
    """Room for messages of clients, each known by a key.

    Args:
        most_bytes: Of large messages, and reports, at once.
        resume: Told the key of one that may go on.

    Attributes:
        held: Bytes for which there is no room left for others.
    """

    def __init__(self, most_bytes: int, resume: Callable[[K], None]) -> None:
        self._most = most_bytes
        self._resume = resume
        self.held = 0
        self._inside: dict[K, int] = {}
        self._line: dict[K, int] = {}

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    def enter(self, key: K, size: int) -> bool:
        """Whether a message of this size may come now; else its key is resumed later."""
        if size <= SMALL_BYTES:
            return True
        self._line[key] = size
        if len(self._line) == 1 and self._fits(size):
            self._take(key)
            return True
        return False

    def keep(self, key: K, size: int) -> None:
        """The message is complete and stays, as a report of this size; there may be less room than that."""
        self._line.pop(key, None)
        self.held += size - self._inside.get(key, 0)
        self._inside[key] = size

    def leave(self, key: K) -> None:
        """The message is complete or will never be, or its round has taken it. Idempotent."""
        self._line.pop(key, None)
        self.held -= self._inside.pop(key, 0)
        while self._line:
            first, size = next(iter(self._line.items()))
            if not self._fits(size):
                break
            self._take(first)
            self._resume(first)

    def _fits(self, size: int) -> bool:
        return not self.held or self.held + size <= self._most

    def _take(self, key: K) -> None:
        size = self._line.pop(key)
        self._inside[key] = self._inside.get(key, 0) + size
        self.held += size
