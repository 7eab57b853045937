"""`Round`: one round of a task, from the first client that waits for it to the checkpoint that it commits.

Theory::

    phase        means                                     is left by
    -----------  ----------------------------------------  -----------------------------------------------------------
    SELECTING    clients wait; none has an answer          enough clients, or selection_timeout after the first (F-050)
    REPORTING    the accepted devices may report           enough reports, no device left, or report_timeout (F-051);
                                                           or an early end of the function (F-084)
    AGGREGATING  the function reads the rest and ends      its checkpoint or its error; aggregate_timeout (F-082)
    COMMITTING   the checkpoint is being stored            the service's answer; without one the population is closed
    ENDED        committed, failed, or not begun           nothing: the next round is another object

A selection that is too small rejects all clients; another round replaces this one, which is not a failure.

An accepted device is in one state at any time: *outstanding* until it reports or leaves; *pending* from its report
until the function's input has taken this and the device is answered (F-081); or counted for good. A report that was
accepted counts even if its device leaves before the answer. When the round closes, outstanding devices get ABORTED at
once. When the function ends early, devices with pending reports get it, too; these were not fed and count as late
(F-053). The round makes no call that calls it back at once: notices wait in mailboxes; messages for the function, and
the result of a commit, are delivered in a later turn of the event loop.
"""

from __future__ import annotations

import enum
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.core.timers import Timer
from invoker.errors import InternalError, InvocationError, Status, StatusError
from invoker.message import Headers, Message
from invoker.protocols.federated.aggregating import Abandon, AggregatingSession, Begin, Enough, Report, Word
from invoker.protocols.federated.backing import Commit, TaskSetup, excess
from invoker.protocols.federated.config import TaskConfig
from invoker.protocols.federated.members import Member, RoundContext, Stage
from invoker.protocols.federated.messages import Blob, Offer, ReportIn, SecAggTerms
from invoker.protocols.federated.selection import Selection
from invoker.protocols.federated.tally import RoundRecord
from invoker.tensors.checkpoint import CHECKPOINT

log = logging.getLogger(__name__)

_CODES: Final = frozenset(Status)

_WHY: Final = {
    "aggregate_timeout": "the aggregation function took too long",
    "aggregation": "the aggregation function gave no checkpoint",
    "commit": "its checkpoint could not be stored",
    "corrupted_shares": "shares of secure aggregation do not fit together",
    "ended_early": "the aggregation function ended before it had enough reports",
    "too_few": "too few reports came",
    "too_few_clients": "too few devices were left for secure aggregation",
    "too_few_visible": "too few devices were left for a sum that may be seen",
    "too_large": "its checkpoint is too large for devices",
}
"""The texts for devices, by the reason of the failure."""


class Phase(enum.Enum):
    """The phases of a round; the module's docstring explains them."""

    SELECTING = "selecting"
    REPORTING = "reporting"
    AGGREGATING = "aggregating"
    COMMITTING = "committing"
    ENDED = "ended"


class Rounds(Protocol):
    """The task of a round, which is notified of its end."""

    population: str
    setup: TaskSetup

    def dissolved(self, round_: Round) -> None:
        """Called when a selection had too few clients, which were rejected."""

    def ended(self, round_: Round, checkpoint: bytes | None) -> None:
        """Called when the round has ended, with a stored checkpoint, or None if it failed."""


class Round:
    """One round with plain reports; see `invoker.protocols.federated.secure` for the other kind.

    Args:
        round_context: The objects that all rounds of the coordinator share.
        task: The task of the round.
        number: The number under which the round will be committed.
        checkpoint: The checkpoint from which the round starts.
    """

    def __init__(self, round_context: RoundContext, task: Rounds, number: int, checkpoint: Blob) -> None:
        self.phase = Phase.SELECTING
        self.phase_id = round_context.backing.new_id()  # F-048
        self.number = number
        self.outstanding: dict[Member, None] = {}
        # devices by the ordinal of their report; they are answered when it is taken
        self.pending: dict[int, Sequence[Member]] = {}
        self.counts: Counter[str] = Counter()
        self.accepted = self.summed = 0
        self.began = round_context.timers.now()
        self._round_context, self._task, self._checkpoint = round_context, task, checkpoint
        self.selection = Selection(round_context, self.config, self._least_clients, self._decided)
        self._timer: Timer | None = None
        checker = task.setup.checker
        self._check = checker(checkpoint.data) if checker is not None else None
        self._tell: Callable[[Word], None] | None = None  # passes messages to the function's conversation
        self._ordinal = 0
        self._taken = 0

    @property
    def config(self) -> TaskConfig:
        """The configuration of the task."""
        return self._task.setup.config

    # Selection.

    def has_room(self, *, is_preferred: bool) -> bool:
        """Whether one more client may wait for the round (F-052)."""
        return self.phase is Phase.SELECTING and self.selection.has_room(is_preferred=is_preferred)

    def join(self, member: Member) -> None:
        """Add a device to the selection; the device waits until the selection is decided."""
        self.selection.join(member, self)

    @property
    def _least_clients(self) -> int:
        """The smallest number of clients with which the round begins."""
        return self.config.min_clients

    def _decided(self, chosen: Sequence[Member]) -> None:
        """F-050: Accept the chosen clients; without any, another round replaces this one."""
        what = "begun" if chosen else "too_few"
        self._round_context.tally.selections[self._task.population, self.config.name, what] += 1
        if chosen:
            self._begin(chosen)
        else:
            self.dissolve(what)

    def dissolve(self, reason: str) -> None:
        """Reject the waiting clients, and do not begin the round."""
        self._move(Phase.ENDED)
        self.selection.reject(reason)
        self._task.dissolved(self)

    # Reporting.

    def _begin(self, chosen: Sequence[Member]) -> None:
        self._move(Phase.REPORTING)
        self.began = self._round_context.timers.now()
        self.accepted = len(chosen)
        setup = self._task.setup
        facts = Headers(population=self._task.population, task=self.config.name, round=str(self.number))
        model = self._checkpoint.data if setup.takes_model else None
        self._tell = self._round_context.backing.aggregate(
            AggregatingSession(self, self.config.aggregate, model, facts)
        )
        self._tell(Begin())
        terms = self._terms(len(chosen))
        offer = Offer(self.phase_id, self.config.name, setup.plan, self._checkpoint, terms)
        for number, one in enumerate(chosen):
            one.round, one.number = self, number
            self.outstanding[one] = None
            one.accept(offer)
        self._await_reports()

    def _terms(self, clients: int) -> SecAggTerms | None:  # noqa: ARG002 - only secure rounds use it
        return None

    def _await_reports(self) -> None:
        self._after(self.config.report_timeout_s, self.close)

    def report(self, member: Member, report: ReportIn) -> None:
        """Handle a report that came without a message of secure aggregation."""
        self._count_code(report)
        if report.status != Status.OK:
            self._lose(member, "failed")  # F-060
            member.thank()
            return
        member.move(Stage.REPORTED)
        self._round_context.gate.keep(member, len(report.update))
        if self._check is None:
            self._checked(member, report, None)
        else:
            # Even a small update is checked in a thread, since 58 kB may inflate to 60 MB. Meanwhile the device stays
            # outstanding, so the round may close without it.
            job = partial(self._check, report.update)
            self._round_context.backing.compute(job, partial(self._checked, member, report))

    def _checked(self, member: Member, report: ReportIn, wrong: object) -> None:
        """Feed a report after its check; it is answered when it is taken. ``wrong``: the check's error, or None."""
        if member not in self.outstanding:
            self._round_context.gate.leave(member)  # the client has left, or got an error when the round closed
            return
        if isinstance(wrong, Exception):
            self._round_context.gate.leave(member)
            self._lose(member, "invalid")  # F-086
            member.over(_refusal(wrong))
            return
        del self.outstanding[member]
        self.counts["ok"] += 1
        self.pending[self._ordinal] = (member,)
        duration = report.duration_s
        self._feed(report.update, {} if duration is None else {"duration_ms": str(round(duration * 1000))})
        if self.counts["ok"] >= self.config.goal_clients or not self.outstanding:
            self.close()

    def secure(
        self,
        member: Member,
        message: secagg_pb.ClientToServerWrapperMessage,  # noqa: ARG002 - only secure rounds use it
        report: ReportIn | None,  # noqa: ARG002 - likewise
    ) -> None:
        """Refuse a message of secure aggregation, since this round is plain."""
        self._lose(member, "invalid")
        member.over(StatusError(Status.INVALID_ARGUMENT, "the reports of this task are plain"))

    def leave(self, member: Member) -> None:
        """Remove a device that has left, or was cut off for an invalid message."""
        self.selection.leave(member)
        if member in self.outstanding:
            self._lose(member, "dropped")

    def _lose(self, member: Member, what: str) -> None:
        """Count an outstanding device as lost; after the last one the round closes."""
        del self.outstanding[member]
        self.counts[what] += 1
        if not self.outstanding:
            self.close()

    def _count_code(self, report: ReportIn) -> None:
        self._round_context.tally.codes[report.status if report.status in _CODES else Status.UNKNOWN] += 1  # F-061

    def _feed(self, update: bytes, more: dict[str, str]) -> None:
        """Feed a report to the function, with metadata that reveal nothing about the client (F-080)."""
        assert self._tell is not None
        facts = {"population": self._task.population, "task": self.config.name, "round": str(self.number)}
        headers = Headers(facts | {"ordinal": str(self._ordinal)} | more)
        self._tell(Report(self._ordinal, Message(update, media_type=CHECKPOINT, headers=headers)))
        self._ordinal += 1

    # Aggregation.

    def close(self) -> None:
        """Accept no more reports, and end the function's input (F-051)."""
        if self.phase is not Phase.REPORTING:
            return
        assert self._tell is not None
        if self.counts["ok"] < self.config.min_clients:
            self.fail("too_few")
            return
        self._move(Phase.AGGREGATING)
        self._turn_away()
        self._tell(Enough())
        self._await_function()

    def _await_function(self) -> None:
        limit = self.config.aggregate_timeout_s
        self._after(limit, lambda: self.fail("aggregate_timeout"))

    def taken(self, ordinal: int) -> None:
        """Answer the devices that sent a report, since the function's input has taken it (F-081)."""
        if self.phase is Phase.ENDED:
            return  # the devices were already notified that the round failed
        self._taken += 1
        for one in self.pending.pop(ordinal, ()):
            self._round_context.gate.leave(one)
            one.thank()

    def finished(self, checkpoint: bytes | None, error: InvocationError | None) -> None:
        """Commit the checkpoint of the function, or fail the round with the function's error."""
        self._tell = None
        if self.phase not in (Phase.REPORTING, Phase.AGGREGATING):
            return
        if error is not None:
            # F-140: the error's text is not logged, since it may reveal an update
            told = {"phase_id": self.phase_id, "status": error.status.name, "error": type(error).__name__}
            log.warning("the aggregation of a round has failed", extra=told)
            self.fail("aggregation")
            return
        assert checkpoint is not None, "a session that finishes without an error has a checkpoint"
        self._turn_away()  # F-084
        self._turn_away_pending()
        if self._taken < self._needed:
            self.fail("ended_early")
            return
        if why := excess(self._task.setup.plan.data, checkpoint):
            log.warning("the checkpoint of a round is too large: %s", why, extra={"phase_id": self.phase_id})
            self.fail("too_large")  # F-082: with such a checkpoint no device could take part in a later round
            return
        self._move(Phase.COMMITTING)
        commit = Commit(self._task.population, self.config.name, self.number, self.phase_id, checkpoint)
        self._round_context.backing.commit(commit, lambda is_stored: self._committed(checkpoint, is_stored=is_stored))

    @property
    def _needed(self) -> int:
        """How many frames the function must have been fed; with fewer, its checkpoint does not count."""
        return self.config.min_clients

    def _turn_away(self) -> None:
        """F-016: Send ABORTED to devices whose reports have not come when the round closes."""
        late, self.outstanding = self.outstanding, {}
        self.counts["late"] += len(late)
        for one in late:
            one.over(StatusError(Status.ABORTED, "the round has closed before the report came"))

    def _turn_away_pending(self, what: str = "late", error: InvocationError | None = None) -> None:
        """F-053: Send an error to devices whose reports were not fed; these reports do not count."""
        pending, self.pending = [one for some in self.pending.values() for one in some], {}
        self.counts["ok"] -= len(pending)
        self.counts[what] += len(pending)
        for one in pending:
            self._round_context.gate.leave(one)
            one.over(error or StatusError(Status.ABORTED, "the round has closed before the report was taken"))

    def _committed(self, checkpoint: bytes, *, is_stored: bool) -> None:
        if self.phase is not Phase.COMMITTING:
            return
        if is_stored:
            self._end("", checkpoint)
        else:
            self.fail("commit")

    # Endings.

    def fail(self, reason: str, error: InvocationError | None = None) -> None:
        """Fail the round: its reports do not count, and waiting devices get ``error``, or ABORTED."""
        if self.phase is Phase.ENDED:
            return
        if self.phase is Phase.SELECTING:
            self.dissolve(reason)
            return
        self._move(Phase.ENDED)
        error = error or StatusError(Status.ABORTED, f"the round has failed: {_WHY.get(reason, reason)}")
        if self._tell is not None:
            self._tell(Abandon(error))
        self._turn_away_pending("cut", error)
        cut, self.outstanding = self.outstanding, {}
        self.counts["cut"] += len(cut)
        for one in cut:
            one.over(error)
        self._end(reason, None)

    def _end(self, reason: str, checkpoint: bytes | None) -> None:
        self._move(Phase.ENDED)
        self._round_context.tally.ended(self._record(reason))
        self._task.ended(self, checkpoint)

    def _record(self, reason: str) -> RoundRecord:
        of = self.counts
        return RoundRecord(
            self._task.population, self.config.name, self.number, self.phase_id, "failed" if reason else "committed",
            reason, self.accepted, of["ok"], of["failed"], of["invalid"], of["late"], of["dropped"], of["cut"],
            self.summed, self._round_context.timers.now() - self.began,
        )  # fmt: skip

    def _move(self, phase: Phase) -> None:
        self.phase = phase
        self._stop_timer()

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._round_context.timers.after(seconds, action)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _refusal(wrong: Exception) -> InvocationError:
    """The error for the sender of an update that failed the check."""
    if isinstance(wrong, (ValueError, InvocationError)):
        return StatusError(Status.INVALID_ARGUMENT, f"the update does not fit: {wrong}")
    log.error("the check of an update has failed", exc_info=wrong)
    return InternalError()
