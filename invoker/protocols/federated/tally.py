"""`Tally`: what metrics and logs show of populations. It only counts, and never sees an update (F-140, F-141)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import msgspec

_RECORDS: Final = 200


class RoundRecord(msgspec.Struct, frozen=True):
    """The record of a round. Each client that was accepted is in one of ok, failed, invalid, late, dropped and cut.

    Attributes:
        population: Its name.
        task: Its name.
        number: The number of the round.
        phase_id: The id of the round.
        outcome: ``committed`` or ``failed``.
        reason: Why it failed, in a short word; empty: it did not fail.
        accepted: Clients that took part.
        ok: Reports that the aggregation function has got.
        failed: Reports whose status was not OK.
        invalid: Reports that the function cannot read.
        late: Clients whose report had not come when the round closed.
        dropped: Clients that left.
        cut: Clients whose round failed before they were done.
        summed: Updates in the sum, with secure aggregation; some of their clients may have left since.
        seconds: The time from its acceptance of clients to its end.
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
    """Counts of one process. Keys are names of populations and tasks, and short words.

    Attributes:
        states: Conversations by their stage; see `invoker.protocols.federated.members`.
        accepted: Clients by (population, task).
        rejected: Clients by (population, reason).
        dropped: Conversations that ended without an answer, by their stage.
        reports: Reports by (population, task, ``ok``, ``failed``, ``invalid``, ``late``, ``dropped`` or ``cut``).
        codes: Reports by the number of their status.
        selections: Selections by (population, task, ``begun`` or ``too_few``).
        secure_drops: Clients that secure aggregation has dropped or lost, by (population, task, round of it, reason).
        sent: Bytes of the chunk layer to clients.
        received: Bytes of the chunk layer from clients.
        records: The last rounds, the latest at the end.
        observers: Called with the record of each round when it has ended.
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
