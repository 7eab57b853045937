"""`Gate`: how many bytes of reports may be under way at once, whatever clients do (F-081).

A large message needs room from its first chunk until it is complete, and a report until its round has taken it. Those
that find none wait in a line; the first of it goes on when there is room again. One message is let in always, however
large it is. Small messages need no room: there are at most as many as conversations.

A client that sends slowly, or not at all, would keep others waiting with its room. So while others wait, a message must
come within `PATIENCE_S` and as long as its bytes take at `LEAST_BYTES_PER_S`; one that takes longer is put out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from invoker.protocols.federated.timers import Timer, Timers

__all__ = ["LEAST_BYTES_PER_S", "PATIENCE_S", "SMALL_BYTES", "Gate"]

SMALL_BYTES: Final = 64 * 1024

PATIENCE_S: Final = 60.0
"""Long enough for a busy server, which reads all that are inside by turns: 64 MiB at 1 MiB/s."""

LEAST_BYTES_PER_S: Final = 256 * 1024

K = TypeVar("K", bound=Hashable)


class Gate(Generic[K]):
    """Room for messages of clients, each known by a key.

    Args:
        most_bytes: Of large messages, and reports, at once.
        timers: What is due when.
        resume: Told the key of one that may go on.
        put_out: Told the key of one that is too slow while others wait; it has no room any more.

    Attributes:
        held: Bytes for which there is no room left for others.
    """

    def __init__(
        self, most_bytes: int, timers: Timers, *, resume: Callable[[K], None], put_out: Callable[[K], None]
    ) -> None:
        self._most = most_bytes
        self._timers = timers
        self._resume = resume
        self._put_out = put_out
        self.held = 0
        self._inside: dict[K, int] = {}
        self._until: dict[K, float] = {}  # of those that are still coming
        self._line: dict[K, int] = {}
        self._timer: Timer | None = None

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
        self._watch()
        return False

    def keep(self, key: K, size: int) -> None:
        """The message is complete and stays, as a report of this size; there may be less room than that."""
        self._line.pop(key, None)
        self._until.pop(key, None)
        self.held += size - self._inside.get(key, 0)
        self._inside[key] = size

    def leave(self, key: K) -> None:
        """The message is complete or will never be, or its round has taken it. Idempotent."""
        self._line.pop(key, None)
        self._until.pop(key, None)
        self.held -= self._inside.pop(key, 0)
        while self._line:
            first, size = next(iter(self._line.items()))
            if not self._fits(size):
                self._watch()
                return
            self._take(first)
            self._resume(first)
        self._stop()

    def _fits(self, size: int) -> bool:
        return not self.held or self.held + size <= self._most

    def _take(self, key: K) -> None:
        size = self._line.pop(key)
        self._inside[key] = self._inside.get(key, 0) + size
        self._until[key] = self._timers.now() + PATIENCE_S + size / LEAST_BYTES_PER_S
        self.held += size

    def _watch(self) -> None:
        """Look again when the first of those that are coming must be there, because others wait."""
        self._stop()
        if self._until:
            delay_s = min(self._until.values()) - self._timers.now()
            self._timer = self._timers.after(max(0.0, delay_s), self._look)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now = self._timers.now()
        for key in [one for one, until in self._until.items() if until <= now]:
            if self._line and key in self._until:  # whoever was put out before may have taken others with it
                self._put_out(key)
                self.leave(key)
        if self._line:
            self._watch()  # also if rounding has brought us here a moment too early
