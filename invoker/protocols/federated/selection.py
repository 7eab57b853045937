"""`Selection`: the clients that wait for a round, and the choice of those that take part (F-050, F-052, F-055).

The choice is made when `TaskConfig.cohort` clients wait; it is delayed until the next tick, so that among clients that
come at the same time those with a valid retry token are preferred. At most max_clients wait. The time limit of a
selection begins with its first client. At the time limit the waiting clients are chosen if there are enough, and
rejected otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from invoker.core.timers import Timer
from invoker.protocols.federated.config import TaskConfig
from invoker.protocols.federated.members import Member, Party, RoundContext, Stage


class Selection:
    """The clients that wait for one round.

    Args:
        round_context: The objects that all rounds of the coordinator share.
        config: The configuration of the task.
        least: The smallest number of clients with which the round begins.
        decided: Called with the chosen devices after all others were rejected. If there are too few, it is called with
            an empty list, and rejects all.
    """

    def __init__(
        self, round_context: RoundContext, config: TaskConfig, least: int, decided: Callable[[Sequence[Member]], None]
    ) -> None:
        self._round_context, self._config, self._least_clients = round_context, config, least
        self._decided: Callable[[Sequence[Member]], None] | None = decided
        self._waiting: dict[Member, None] = {}
        self._timer: Timer | None = None
        self._until = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def has_room(self, *, is_preferred: bool) -> bool:
        """Whether one more client may wait (F-052)."""
        return len(self._waiting) < self._config.max_clients or (is_preferred and self._last() is not None)

    def join(self, member: Member, party: Party) -> None:
        """Add a client to a round that has room."""
        if len(self._waiting) >= self._config.max_clients and (last := self._last()) is not None:
            del self._waiting[last]
            last.tell(last.reject("full"))
        member.move(Stage.WAITING)
        member.round = party
        self._waiting[member] = None
        if len(self._waiting) == self._config.cohort:
            self._after(0.0)
        elif len(self._waiting) == 1:
            self._until = self._round_context.timers.now() + self._config.selection_timeout_s
            self._after(self._config.selection_timeout_s)

    def leave(self, member: Member) -> None:
        """Remove a device that has left, if it is waiting here."""
        self._waiting.pop(member, None)
        if not self._waiting:
            self._stop()

    def reject(self, reason: str) -> None:
        """Reject all waiting clients, and make no choice."""
        self._stop()
        self._decided = None
        waiting, self._waiting = self._waiting, {}
        for one in waiting:
            one.tell(one.reject(reason))

    def _last(self) -> Member | None:
        """The last client without a valid retry token, which one with a valid token may replace (F-055)."""
        return next((one for one in reversed(self._waiting) if not one.has_token), None)

    def _decide(self) -> None:
        """F-050: Choose among the waiting clients, unless there are too few."""
        remaining_s = self._until - self._round_context.timers.now()
        if len(self._waiting) < self._config.cohort and remaining_s > 0:
            self._after(remaining_s)  # there were enough clients, but some have left since
            return
        # breaks the cycle with the round, which refers to large checkpoints
        decided, self._decided = self._decided, None
        assert decided is not None, "the choice is made once"
        if len(self._waiting) < self._least_clients:
            decided(())
            return
        waiting, self._waiting = sorted(self._waiting, key=lambda one: not one.has_token), {}
        for one in waiting[self._config.cohort :]:
            one.tell(one.reject("full"))
        decided(waiting[: self._config.cohort])

    def _after(self, seconds: float) -> None:
        self._stop()
        self._timer = self._round_context.timers.after(seconds, self._decide)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
