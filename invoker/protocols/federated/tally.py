"""`Tally`: the counts of populations for metrics and logs; it contains no data of updates (F-140, F-141)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import msgspec

_RECORDS: Final = 200


class RoundRecord(msgspec.Struct, frozen=True):
    """The record of a round; each accepted client counts in one of ok, failed, invalid, late, dropped and cut.

    Attributes:
        population: The name of the population.
        task: The name of the task.
        number: The number of the round.
        phase_id: The id of the round.
        outcome: ``committed`` or ``failed``.
        reason: Why the round failed, as a word; empty: it did not fail.
        accepted: How many clients took part.
        ok: How many reports the aggregation function was fed.
        failed: How many reports had another status than OK.
        invalid: How many reports were invalid.
        late: How many reports had not come when the round closed.
        dropped: How many clients left.
        cut: How many clients were not done when the round failed.
        summed: How many updates are in the sum of secure aggregation, including those of clients that left later.
        seconds: The time from the acceptance of clients to the end of the round.
    """

    population: str
    task: str
    number: int
    phase_id: str
    outcome: str
    reason: str
    accepted: int
    ok: int
    failed: int
    invalid: int
    late: int
    dropped: int
    cut: int
    summed: int
    seconds: float


class Tally:
    """The counts of one process; keys are names of populations and tasks, and fixed words.

    Attributes:
        states: Conversations by stage; see `invoker.protocols.federated.members`.
        accepted: Clients by (population, task).
        rejected: Clients by (population, reason).
        dropped: Conversations that ended without an answer, by stage.
        reports: Reports by (population, task, ``ok``, ``failed``, ``invalid``, ``late``, ``dropped`` or ``cut``).
        codes: Reports by the number of the status.
        selections: Selections by (population, task, ``begun`` or ``too_few``).
        secure_drops: Clients that secure aggregation dropped or lost, by (population, task, one of its four rounds,
            reason).
        sent: Bytes that the chunk layer sent to clients.
        received: Bytes that the chunk layer received from clients.
        records: The records of the last rounds; the latest is at the end.
        observers: Called with the record of each round after its end.
    """

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.accepted: Counter[tuple[str, str]] = Counter()
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.dropped: Counter[str] = Counter()
        self.reports: Counter[tuple[str, str, str]] = Counter()
        self.codes: Counter[int] = Counter()
        self.selections: Counter[tuple[str, str, str]] = Counter()
        self.secure_drops: Counter[tuple[str, str, int, str]] = Counter()
        self.sent = self.received = 0
        self.records: deque[RoundRecord] = deque(maxlen=_RECORDS)
        self.observers: list[Callable[[RoundRecord], None]] = []

    def ended(self, record: RoundRecord) -> None:
        """Count a round that has ended, and call the observers."""
        self.records.append(record)
        for what in ("ok", "failed", "invalid", "late", "dropped", "cut"):
            if many := getattr(record, what):
                self.reports[record.population, record.task, what] += many
        for observer in self.observers:
            observer(record)
