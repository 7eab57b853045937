"""`Gate`: limits how many bytes of reports are received and held at once (F-081).

A large message takes room step by step, for the bytes that have come, so a message that is announced but does not come
takes almost none. A report keeps its room until its round has taken it. A message without room waits. Small messages
need no room, since there are at most as many as conversations.

Incomplete messages could take all the room, so that none would ever be complete. So some of the waiting messages may
*finish*: they may come completely, even without room. These are as many as fit in addition to the complete reports, and
always one of each owner. All together this is at most twice the room, plus one message of each owner. An owner is a
population, so that a round which takes its reports slowly does not delay other populations (F-138).

A client that sends slowly, or not at all, would block others with its room. So while others wait, each step must come
within `PATIENCE_S` plus the time for its bytes at `LEAST_BYTES_PER_S`; a slower client is cut off.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from invoker.core.budget import ProcessBudget, Share
from invoker.core.timers import Timer, Timers
from invoker.errors import DeadlineExceeded, InvocationError, Overloaded

SMALL_BYTES: Final = 64 * 1024

PATIENCE_S: Final = 5.0
"""How many seconds a step may take in addition to its bytes; a busy server reads all clients in turn."""

LEAST_BYTES_PER_S: Final = 256 * 1024

_NEVER: Final = float("inf")

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Message:
    """A message that is coming, or a report that is kept.

    Attributes:
        owner: The owner, that is, the population.
        size: The size of the complete message, in bytes.
        share: The message's share of the process's budget.
        granted: How many bytes were allowed to come.
        finishes: Whether the message may come completely, or is complete.
        until: The time by which the granted bytes must have come, if others wait.
        end: The time by which a message that finishes must be complete.
    """

    owner: str
    size: int
    share: Share
    granted: int = 0
    finishes: bool = False
    until: float = _NEVER
    end: float = _NEVER


class Gate(Generic[K]):
    """Gives room to the messages of clients, each of which has a key.

    Args:
        most_bytes: The room for large messages and reports, in bytes; see the module's docstring.
        timers: The timers that the gate uses.
        owner: Returns the owner of a key.
        resume: Called with the key of each message that may continue.
        put_out: Called with the key of a message that loses its room, and with an error: the message is too slow, or
            the process holds too many bytes.
        memory: The budget of the process; None: only ``most_bytes`` is a limit.

    Attributes:
        held: How many bytes of the room are taken.
    """

    def __init__(
        self,
        most_bytes: int,
        timers: Timers,
        *,
        owner: Callable[[K], str],
        resume: Callable[[K], None],
        put_out: Callable[[K, InvocationError], None],
        memory: ProcessBudget | None = None,
    ) -> None:
        self._most = most_bytes
        self._timers = timers
        self._owner = owner
        self._resume = resume
        self._put_out = put_out
        self._memory = memory or ProcessBudget(sys.maxsize)
        self.held = 0
        self._messages: dict[K, _Message] = {}
        self._line: dict[K, int] = {}  # waiting messages, each with the number of bytes that it needs
        self._whole: Counter[str] = Counter()  # bytes of the messages that finish, by owner
        self._timer: Timer | None = None

    @property
    def waiting(self) -> int:
        """How many messages wait for room."""
        return len(self._line)

    def ask(self, key: K, size: int, upto: int) -> bool:
        """Whether the first ``upto`` bytes of a message of ``size`` may be received now.

        If not, ``resume`` is called with the key later.
        """
        if size <= SMALL_BYTES:
            return True
        one = self._messages.get(key)
        if one is None:
            one = self._messages[key] = _Message(self._owner(key), size, self._memory.share())
        try:
            is_granted = self._grant(one, upto)
        except Overloaded as error:
            self._refuse(key, error.with_traceback(None))
            return False
        if not is_granted:
            self._line[key] = upto
        if self._line:
            self._watch()
        return is_granted

    def keep(self, key: K, size: int) -> None:
        """Keep a complete message as a report of this size, even if there is not enough room."""
        share = self._remove(key) or self._memory.share()
        share.shrink(size)
        with suppress(Overloaded):  # the bytes are already in memory
            share.grow(size)
        one = self._messages[key] = _Message(self._owner(key), size, share, granted=size, finishes=True)
        self.held += size
        self._whole[one.owner] += size

    def leave(self, key: K) -> None:
        """Release a message that was handled, will never be complete, or whose report the round has taken.

        Idempotent.
        """
        self._drop(key)
        while refused := self._admit():
            for other, error in refused:
                self._drop(other)
                self._put_out(other, error)
        if self._line:
            self._watch()
        else:
            self._stop()

    def _admit(self) -> list[tuple[K, Overloaded]]:
        """Resume the waiting messages that now get room; returns those for which the process has no memory."""
        refused = []
        # Messages of which the most has come are first, since they will be complete first.
        for other in sorted(self._line, key=lambda one: -self._messages[one].granted):
            try:
                is_granted = self._grant(self._messages[other], self._line[other])
            except Overloaded as error:
                refused.append((other, error.with_traceback(None)))
                continue
            if is_granted:
                del self._line[other]
                self._resume(other)
        return refused

    def _refuse(self, key: K, error: InvocationError) -> None:
        """Cut off a message that loses its room."""
        self._put_out(key, error)
        self.leave(key)

    def _drop(self, key: K) -> None:
        """Release the room of a message."""
        share = self._remove(key)
        if share is not None:
            share.close()

    def _remove(self, key: K) -> Share | None:
        """Remove a message; returns its share of the process's budget."""
        self._line.pop(key, None)
        one = self._messages.pop(key, None)
        if one is None:
            return None
        self.held -= one.granted
        if one.finishes:
            self._whole[one.owner] -= one.size
        return one.share

    def _grant(self, one: _Message, upto: int) -> bool:
        """Give room to a message if there is room or it may finish; raises Overloaded if the process has no memory."""
        more, now = upto - one.granted, self._timers.now()
        if not one.finishes and self.held + more > self._most:
            if self._whole[one.owner] and self._whole.total() + one.size > self._most:
                return False
            one.share.grow(upto)
            one.finishes = True
            one.end = now + PATIENCE_S + one.size / LEAST_BYTES_PER_S
            self._whole[one.owner] += one.size
        one.share.grow(upto)
        self.held += more
        one.granted = upto
        one.until = min(one.end, now + PATIENCE_S + more / LEAST_BYTES_PER_S)
        return True

    def _watch(self) -> None:
        """Set a timer for the first step that is due, because others wait."""
        if self._timer is None:
            until = min((one.until for key, one in self._messages.items() if key not in self._line), default=_NEVER)
            if until < _NEVER:
                self._timer = self._timers.after(max(0.0, until - self._timers.now()), self._look)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer, now = None, self._timers.now()
        for key, one in list(self._messages.items()):
            # Cutting off an earlier client may have ended this one, too, or may have made enough room for all that
            # wait.
            if self._line and one.until <= now and key not in self._line and self._messages.get(key) is one:
                self._refuse(key, DeadlineExceeded("the message came too slowly while others waited for their turn"))
        if self._line:
            self._watch()  # correct even if rounding lets the timer run a moment too early
