"""`Results`: collects the results of simulated rounds from the server and the devices."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from invoker.protocols.federated.tally import RoundRecord, Tally

if TYPE_CHECKING:
    from invoker.protocols.federated.client.messages import Attempt
    from invoker.protocols.federated.verbs.simulation.device import Conversation


class Times(msgspec.Struct, frozen=True):
    """Quantiles of durations, in simulated seconds; None: there was nothing to measure."""

    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Result(msgspec.Struct, frozen=True):
    """The result of a round; ``accepted`` is the sum of reported, failed, invalid, late, dropped and cut.

    Attributes:
        population: The name of the population.
        task: The name of the task.
        round: The number of the round.
        outcome: ``committed`` or ``failed``.
        why: Why the round failed, as a word; empty: it did not fail.
        accepted: How many devices took part.
        reported: How many devices reported to the aggregation function, directly or in the sum.
        failed: How many devices reported that their plan failed.
        invalid: How many devices sent an invalid report or message.
        late: How many reports had not come when the round closed.
        dropped: How many devices left before their report.
        cut: How many devices were not done when the round failed.
        summed: How many updates are in the sum of secure aggregation, including those of devices that left in R3.
        left: How many devices left, by the point: ``before report``, or R0 to R3.
        rejected: How many devices were rejected since the previous round, by reason.
        checkin_to_accept_s: The time from the checkin until the device got its acceptance.
        accept_to_report_s: The time from the acceptance until the report was answered.
        bytes_up: The size of all frames that the devices of the round sent, in bytes.
        bytes_down: The size of all frames that were sent to these devices, in bytes.
        seconds: The simulated time from the acceptance of clients to the end of the round.
        ended_at: When the round ended, in simulated seconds since the start of the simulation.
        metric: The metric of the committed checkpoint, if there is a metric.
    """

    population: str
    task: str
    round: int
    outcome: str
    why: str
    accepted: int
    reported: int
    failed: int
    invalid: int
    late: int
    dropped: int
    cut: int
    summed: int
    left: Mapping[str, int]
    rejected: Mapping[str, int]
    checkin_to_accept_s: Times
    accept_to_report_s: Times
    bytes_up: int
    bytes_down: int
    seconds: float
    ended_at: float
    metric: float | None = None


class Totals(msgspec.Struct):
    """Sums over all conversations, including those that were in no round.

    Attributes:
        conversations: How many conversations have ended.
        ends: How many conversations ended, by ``end`` of `invoker.client.federated.Attempt`, or ``left``: the device
            left.
        bytes_up: The size of all frames from devices, in bytes.
        bytes_down: The size of all frames to devices, in bytes.
        seconds: The simulated seconds since the start.
    """

    conversations: int = 0
    ends: Counter[str] = msgspec.field(default_factory=Counter)
    bytes_up: int = 0
    bytes_down: int = 0
    seconds: float = 0.0


class _Open:
    """A round some of whose devices are not done."""

    def __init__(self) -> None:
        self.accepts, self.reports = array("d"), array("d")
        self.left: Counter[str] = Counter()
        self.up = self.down = self.ended = 0
        self.record: RoundRecord | None = None
        self.ended_at = 0.0
        self.rejected: Mapping[str, int] = {}
        self.metric: float | None = None


class Results:
    """The results of all rounds.

    Args:
        now: Returns the simulated time.
        tally: The counts of the server.
        metric: Returns the metric of the last committed checkpoint of a population's task.
        told: Called with the result of each round when it is complete.

    Attributes:
        totals: The totals of all conversations.
        rounds: The results of the rounds, in the order in which they were reported.
    """

    def __init__(
        self,
        now: Callable[[], float],
        tally: Tally,
        metric: Callable[[str, str], float | None],
        told: Callable[[Result], None],
    ) -> None:
        self.totals = Totals()
        self.rounds: list[Result] = []
        self._now, self._tally, self._metric, self._told = now, tally, metric, told
        self._open: dict[str, _Open] = {}
        self._rejected: Counter[tuple[str, str]] = Counter()

    # Methods for the server.

    def recorded(self, record: RoundRecord) -> None:
        """Add the record of a round that has ended; some of its devices may not know that yet."""
        one = self._round(record.phase_id)
        one.record, one.ended_at = record, self._now()
        one.rejected = self._newly_rejected(record.population)
        if record.outcome == "committed":
            one.metric = self._metric(record.population, record.task)
        self._look(record.phase_id, one)

    def _newly_rejected(self, population: str) -> dict[str, int]:
        now = Counter({key: many for key, many in self._tally.rejected.items() if key[0] == population})
        found = {why: many - self._rejected[name, why] for (name, why), many in sorted(now.items())}
        self._rejected.update({(population, why): many for why, many in found.items()})
        return {why: many for why, many in found.items() if many}

    # Methods for devices.

    def accepted(self, one: Conversation) -> None:
        """Record how long a device waited until it was accepted."""
        self._round(one.phase_id).accepts.append(one.accepted_at - one.began)

    def left(self, one: Conversation) -> None:
        """Count a device that left, by the point at which it left."""
        if one.phase_id:
            self._round(one.phase_id).left[one.leaves] += 1

    def ended(self, one: Conversation, attempt: Attempt, *, has_left: bool) -> None:
        """Add a conversation to the totals and to its round."""
        totals = self.totals
        totals.conversations += 1
        totals.ends["left" if has_left else attempt.end] += 1
        totals.bytes_up += attempt.sent
        totals.bytes_down += attempt.received
        totals.seconds = self._now()
        if not one.phase_id:
            return
        round_ = self._open.get(one.phase_id)
        if round_ is None:
            return  # the result of its round was already reported
        round_.ended += 1
        round_.up += attempt.sent
        round_.down += attempt.received
        if attempt.end == "reported" and not has_left:
            round_.reports.append(one.reported_at - one.accepted_at)
        self._look(one.phase_id, round_)

    # Rounds.

    def _round(self, phase_id: str) -> _Open:
        return self._open.get(phase_id) or self._open.setdefault(phase_id, _Open())

    def _look(self, phase_id: str, one: _Open) -> None:
        if one.record is not None and one.ended >= one.record.accepted:
            self.close(phase_id)

    def close(self, phase_id: str) -> None:
        """Report a round that has ended, even if some of its devices left before they knew that."""
        one = self._open.get(phase_id)
        if one is None or one.record is None:
            return
        del self._open[phase_id]
        result = _result(one, one.record)
        self.rounds.append(result)
        self._told(result)

    def close_all(self) -> None:
        """Report all rounds that have ended and were not reported yet."""
        for phase_id in list(self._open):
            self.close(phase_id)


def times_of(values: Sequence[float]) -> Times:
    """Quantiles of durations in seconds, by the nearest rank; without durations, an empty `Times`."""
    if not values:
        return Times()
    ranked = sorted(values)

    def at(part: float) -> float:
        return round(ranked[max(0, math.ceil(part * len(ranked)) - 1)], 6)

    return Times(at(0.0), at(0.5), at(0.9), at(0.99), at(1.0))


_DIGITS: Final = 6


def _result(one: _Open, of: RoundRecord) -> Result:
    unheard = of.accepted - len(one.accepts)  # devices that left before they got their acceptance
    left = one.left + Counter({"before report": unheard})
    return Result(
        of.population, of.task, of.number, of.outcome, of.reason,
        of.accepted, of.ok, of.failed, of.invalid, of.late, of.dropped, of.cut, of.summed,
        dict(sorted(left.items())), one.rejected, times_of(one.accepts), times_of(one.reports),
        one.up, one.down, round(of.seconds, _DIGITS), round(one.ended_at, _DIGITS), one.metric,
    )  # fmt: skip
