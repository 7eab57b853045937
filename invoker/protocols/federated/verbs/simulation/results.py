"""The results of simulated rounds: `Results` gathers the reports of the server and the devices about each round."""

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
    """A distribution, in simulated seconds; None: there was nothing to measure."""

    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Result(msgspec.Struct, frozen=True):
    """One round. ``accepted`` is the sum of reported, failed, invalid, late, dropped and cut.

    Attributes:
        population: Its name.
        task: Its name.
        round: Its number.
        outcome: ``committed`` or ``failed``.
        why: Why it failed, in a short word; empty: it did not fail.
        accepted: Devices that took part.
        reported: Devices whose reports the aggregation function has got, directly or in the sum.
        failed: Devices that have reported a failure of their plan.
        invalid: Devices whose report could not be read, or that broke the protocol.
        late: Devices whose report had not come when the round closed.
        dropped: Devices that left before their report.
        cut: Devices whose round failed before they were done.
        summed: Updates in the sum of secure aggregation; including those of devices that left in R3.
        left: The points at which devices left, while the round waited for them: ``before report``, or R0 to R3.
        rejected: Devices that were rejected since the round before, by reason.
        checkin_to_accept_s: Seconds from the checkin until the device was notified that it takes part.
        accept_to_report_s: Seconds from that notice until the device's report was answered.
        bytes_up: Bytes sent up in all frames of its devices, which the chunk layer carries.
        bytes_down: Bytes sent down to its devices.
        seconds: From the acceptance of clients to the end of the round, simulated.
        ended_at: Simulated seconds since the simulation began.
        metric: The metric of the checkpoint that it committed, if one was asked for.
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
    """Sums over all conversations, also over those that reached no round.

    Attributes:
        conversations: How many have ended.
        ends: How many ended in which way, in the words of `invoker.client.federated.Attempt`; ``left``: the device has
            left.
        bytes_up: Bytes sent up in all frames.
        bytes_down: Bytes sent down in all frames.
        seconds: Simulated seconds.
    """

    conversations: int = 0
    ends: Counter[str] = msgspec.field(default_factory=Counter)
    bytes_up: int = 0
    bytes_down: int = 0
    seconds: float = 0.0


class _Open:
    """A round whose devices are not all done."""

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
        now: Simulated time.
        tally: Counts of the server.
        metric: Judges the last committed checkpoint of a population's task.
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

    # The server calls these.

    def recorded(self, record: RoundRecord) -> None:
        """Take the record of a round that has ended; some of its devices may not be notified yet."""
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

    # Devices call these.

    def accepted(self, one: Conversation) -> None:
        """Record how long a device waited until it was accepted, in simulated seconds."""
        self._round(one.phase_id).accepts.append(one.accepted_at - one.began)

    def left(self, one: Conversation) -> None:
        """Count a device that left, by the point at which it did."""
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
            return  # its round was reported already
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
        """Report a round that has ended, even if some devices left before they were notified of its end."""
        one = self._open.get(phase_id)
        if one is None or one.record is None:
            return
        del self._open[phase_id]
        result = _result(one, one.record)
        self.rounds.append(result)
        self._told(result)

    def close_all(self) -> None:
        """Report all rounds that have ended and are not reported yet."""
        for phase_id in list(self._open):
            self.close(phase_id)


def times_of(values: Sequence[float]) -> Times:
    """Quantiles of some durations in seconds, by the nearest rank; zeros if there are none."""
    if not values:
        return Times()
    ranked = sorted(values)

    def at(part: float) -> float:
        return round(ranked[max(0, math.ceil(part * len(ranked)) - 1)], 6)

    return Times(at(0.0), at(0.5), at(0.9), at(0.99), at(1.0))


_DIGITS: Final = 6


def _result(one: _Open, of: RoundRecord) -> Result:
    unheard = of.accepted - len(one.accepts)  # devices that left before they were notified that they were accepted
    left = one.left + Counter({"before report": unheard})
    return Result(
        of.population, of.task, of.number, of.outcome, of.reason,
        of.accepted, of.ok, of.failed, of.invalid, of.late, of.dropped, of.cut, of.summed,
        dict(sorted(left.items())), one.rejected, times_of(one.accepts), times_of(one.reports),
        one.up, one.down, round(of.seconds, _DIGITS), round(one.ended_at, _DIGITS), one.metric,
    )  # fmt: skip
