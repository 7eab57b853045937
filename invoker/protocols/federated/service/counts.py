"""`RoundCounts`: converts the counts of a coordinator into numbers of the process for `/metrics` (F-141)."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

from invoker.protocols.federated.coordinator import RoundCoordinator
from invoker.protocols.federated.metrics import BOUNDS, DURATION, OTHER, round_numbers
from invoker.protocols.federated.tally import RoundRecord
from invoker.telemetry.board import Numbers

log = logging.getLogger(__name__)


class RoundCounts:
    """The counts of one coordinator.

    Args:
        coordinator: The coordinator, with its tally.
        tasks: All tasks, each with its population, in the order of the file.
    """

    def __init__(self, coordinator: RoundCoordinator, tasks: Iterable[tuple[str, str]]) -> None:
        self._coordinator = coordinator
        self._named = set(tasks)
        self._rounds: Counter[tuple[str, ...]] = Counter()
        self._durations: Counter[tuple[str, ...]] = Counter()
        coordinator.tally.observers.append(self._ended)

    def numbers(self) -> Numbers:
        """All counters and gauges of the rounds of this process."""
        coordinator, tally = self._coordinator, self._coordinator.tally
        counters = round_numbers(
            {
                "invoker_rounds": self._rounds,
                "invoker_round_accepted": self._folded(tally.accepted),
                "invoker_round_rejected": self._folded(tally.rejected, 1),
                "invoker_round_dropped": {(state,): number for state, number in tally.dropped.items()},
                "invoker_round_reports": self._folded(tally.reports),
                "invoker_round_selections": self._folded(tally.selections),
                "invoker_round_secagg_dropped": self._folded(tally.secure_drops),
                "invoker_round_chunk_bytes": {("sent",): tally.sent, ("received",): tally.received},
                DURATION: self._durations,
            }
        )
        states: dict[tuple[str, ...], float] = {(state,): number for state, number in tally.states.items()}
        gauges = round_numbers(
            {"invoker_round_sessions": states, "invoker_round_held_bytes": {(): coordinator.held_bytes}}
        )
        return Numbers(counters, gauges)

    def _ended(self, record: RoundRecord) -> None:
        """Count a round, and log its outcome; the line identifies no device."""
        task = self._task(record.population, record.task)
        bound = bisect_left(BOUNDS, record.seconds)
        self._rounds[(*task, record.outcome)] += 1
        self._durations[(*task, f"{BOUNDS[bound]:g}" if bound < len(BOUNDS) else "+Inf")] += 1
        self._durations[(*task, "sum")] += record.seconds  # type: ignore[assignment]  # seconds are floats
        is_committed = record.outcome == "committed"
        log.log(
            logging.INFO if is_committed else logging.WARNING,
            "round ended" if is_committed else "round failed: %s", *([] if is_committed else [record.reason]),
            extra={
                "population": record.population, "task": record.task, "round": record.number,
                "phase_id": record.phase_id, "outcome": record.outcome, "seconds": round(record.seconds, 6),
                "accepted": record.accepted, "reports": record.ok,
            },
        )  # fmt: skip

    def _task(self, population: str, task: str) -> tuple[str, str]:
        return (population, task) if (population, task) in self._named else (OTHER, OTHER)

    def _folded(self, rows: Counter[Any], names: int = 2) -> dict[tuple[str, ...], float]:
        """Rows whose first labels are a population and a task; rows with unknown names are added up."""
        populations = {population for population, _ in self._named}
        made: dict[tuple[str, ...], float] = {}
        for (population, *rest), number in rows.items():
            if names == 1:
                labels = (population if population in populations else OTHER, *rest)
            else:
                labels = (*self._task(population, rest[0]), *(str(one) for one in rest[1:]))
            made[labels] = made.get(labels, 0.0) + number
        return made
