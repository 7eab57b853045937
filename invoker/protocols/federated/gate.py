"""`Gate`: how many bytes of reports may be under way at once, whatever clients do (F-081).

A large message needs room for the bytes that have come, step by step, so one that was announced and does not come takes
almost none. A report keeps its room until its round has taken it. A message without room waits; small messages need
none: there are at most as many as conversations.

Messages that have half come could take up all the room, and none would ever be complete. So some of the waiting ones
may *finish*, that is, come whole without room: as many as fit beside the complete reports, and one of each owner in any
case. Together that is at most twice the room, and one message of each owner. An owner is a
population: a round that takes its reports slowly does not hold up other populations (F-138).

A client that sends slowly, or not at all, would keep others waiting with its room. So while others wait, each step must
come within `PATIENCE_S` plus the time that its bytes take at `LEAST_BYTES_PER_S`; a client that takes longer is cut
off.
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
"""Long enough for a busy server, which reads all that are inside by turns."""

LEAST_BYTES_PER_S: Final = 256 * 1024

_NEVER: Final = float("inf")

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Message:
    """One message or report.

    Attributes:
        owner: The owner of the room that it takes beyond the common one.
        size: Bytes that it will have.
        share: Its share of the budget of the process.
        granted: Bytes that may have come.
        finishes: Whether the whole message may come, or has come.
        until: When the granted bytes must have come, if others wait.
        end: When the whole of a message that finishes must have come.
    """

    owner: str
    size: int
    share: Share
    granted: int = 0
    finishes: bool = False
    until: float = _NEVER
    end: float = _NEVER


class Gate(Generic[K]):
    """Room for messages of clients, each known by a key.

    Args:
        most_bytes: The most bytes of large messages, and reports, at once; see the module.
        timers: Where the gate sets its timers.
        owner: Gives the owner of a key.
        resume: Called with the key of each message that may continue.
        put_out: Called with the key of a message that loses its room, and with the error: it is too slow while others
            wait, or the process holds too much.
        memory: The budget of the process; None: the bytes are counted only here.

    Attributes:
        held: Bytes that are taken from the room.
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
        self._line: dict[K, int] = {}  # each with the number of bytes that it asks for
        self._whole: Counter[str] = Counter()  # bytes of the messages that finish, by owner
        self._timer: Timer | None = None

    @property
    def waiting(self) -> int:
        """How many messages wait for room."""
        return len(self._line)

    def ask(self, key: K, size: int, upto: int) -> bool:
        """Whether the first ``upto`` bytes of a message of ``size`` may be received now.

        Otherwise its key is resumed later.
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
        """Note that the message is complete and is kept as a report of this size, even if there is less room."""
        share = self._remove(key) or self._memory.share()
        share.shrink(size)
        with suppress(Overloaded):  # the message came whole, and is already held
            share.grow(size)
        one = self._messages[key] = _Message(self._owner(key), size, share, granted=size, finishes=True)
        self.held += size
        self._whole[one.owner] += size

    def leave(self, key: K) -> None:
        """Forget a message that is complete, that will never be complete, or whose report the round has taken.

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
        """Resume the messages that have room now; gives the messages for which the process has none."""
        refused = []
        # Messages of which most has come are first: they are complete soonest, and have cost their clients most.
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
        """Forget a message, and give back its bytes."""
        share = self._remove(key)
        if share is not None:
            share.close()

    def _remove(self, key: K) -> Share | None:
        """Forget a message; gives its share of the process's budget."""
        self._line.pop(key, None)
        one = self._messages.pop(key, None)
        if one is None:
            return None
        self.held -= one.granted
        if one.finishes:
            self._whole[one.owner] -= one.size
        return one.share

    def _grant(self, one: _Message, upto: int) -> bool:
        """Give room to a message if there is some, or if it may finish; raises Overloaded if the process has none."""
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
        """Look again when the first of the coming messages is due, because others wait."""
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
            # A client that was cut off before may have ended others too, made room for others, or been the only one
            # that they waited for.
            if self._line and one.until <= now and key not in self._line and self._messages.get(key) is one:
                self._refuse(key, DeadlineExceeded("the message came too slowly while others waited for their turn"))
        if self._line:
            self._watch()  # this also works if the timer rings a moment too early because of rounding
