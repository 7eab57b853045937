"""`Gate`: lets one thread at a time do its work between two waits, so that they do not fight for the interpreter.

Each operation on a completion queue releases the interpreter's lock; with many threads at work, each release wakes
another one, and the machine is busy with switching. So threads whose functions are quick take turns: in order of
arrival, a turn lasting from news to the next wait, or until others have waited for a batch of frames. A turn that
takes longer than a beat of the sweeper is over for the gate, so user code that blocks stalls nobody; a thread whose
function is not quick does not come here at all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

__all__ = ["Gate", "Ticket"]


class Ticket:
    """A thread's place at the gate."""

    __slots__ = ("bell", "turns")

    def __init__(self) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.turns = 0


class Gate:
    """See the module.

    Args:
        on_wait: Called whenever a thread has to wait, so that somebody sees to long turns.
    """

    def __init__(self, on_wait: Callable[[], None]) -> None:
        self._on_wait = on_wait
        self._lock = threading.Lock()
        self._owner: Ticket | None = None
        self._waiting: deque[Ticket] = deque()
        self._seen: tuple[Ticket | None, int] = (None, 0)

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody wants a turn."""
        return bool(self._waiting)

    def enter(self, me: Ticket) -> None:
        """Wait for a turn."""
        with self._lock:
            me.turns += 1
            if self._owner is None:
                self._owner = me
                return
            if self._owner is me:
                return
            self._waiting.append(me)
        self._on_wait()
        me.bell.acquire()

    def leave(self, me: Ticket) -> None:
        """End the turn, if it has not been ended by `beat`."""
        if self._owner is me:
            with self._lock:
                if self._owner is me:
                    self._pass()

    def beat(self) -> bool:
        """End a turn that lasts since the last beat; whether anybody is at the gate."""
        with self._lock:
            owner = self._owner
            now = (owner, owner.turns if owner is not None else 0)
            if owner is not None and now == self._seen:
                self._pass()
            self._seen = now
            return self._owner is not None

    def _pass(self) -> None:
        if self._waiting:
            self._owner = self._waiting.popleft()
            self._owner.turns += 1
            self._owner.bell.release()
        else:
            self._owner = None
