"""`SecureRound`: a round whose reports are added up masked, so that no single one can be seen (F-088 to F-133).

While it is REPORTING, a `SecAggServer` leads the devices through the four rounds of secure aggregation. This object
passes messages between the server and the devices, and keeps the time: each of its rounds has `TaskConfig.step_s`, the
first one includes the training of the devices. A device that it drops gets the reason, and the round continues without
it. In the end it has a sum, which the function gets as the only frame of the round (F-130); the remaining devices are
answered when that is taken, after their last message of secure aggregation (F-094). Or it has none, and the round has
failed (F-124).

The masked input of a device that has left or was dropped later stays in the sum (F-122): so `summed` of a record may
be more than the reports that were answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.errors import InvocationError, Status, StatusError
from invoker.protocols.federated.aggregating import Enough
from invoker.protocols.federated.members import Member, Stage
from invoker.protocols.federated.messages import ReportIn, SecAggTerms, Secure
from invoker.protocols.federated.round import Phase, Round
from invoker.protocols.federated.secagg.events import Drop, Failed, Outcome, Summed
from invoker.tensors.checkpoint import NUM_CLIENTS

if TYPE_CHECKING:
    from invoker.protocols.federated.secagg.server import SecAggServer

_PIECE: Final = 50_000
"""Elements that are copied at once, so that a thread lets others run in between."""

_SILENT: Final = (Drop.SILENT_KEYS, Drop.SILENT_SHARES, Drop.SILENT_INPUT)


class SecureRound(Round):
    """One round with secure aggregation; the module's docstring says more."""

    _server: SecAggServer | None = None
    _step = -1  # the round of secure aggregation that is running

    @property
    def _least_clients(self) -> int:
        assert self.config.secagg is not None
        return max(self.config.min_clients, self.config.secagg.min_visible)

    def _terms(self, clients: int) -> SecAggTerms:
        """The terms: ``expected`` is the largest number of clients, but the threshold is for the actual number."""
        secagg = self.config.secagg
        assert secagg is not None
        threshold = self.config.threshold(clients)
        return SecAggTerms(secagg.vectors, self.config.cohort, threshold, secagg.min_visible or threshold)

    def _await_reports(self) -> None:
        self._in_order = list(self.outstanding)
        self._server = self._new_server(self._terms(len(self._in_order)), len(self._in_order))
        self._server.start()
        self._look()

    def _new_server(self, terms: SecAggTerms, size: int) -> SecAggServer:
        from invoker.protocols.federated.secagg.server import SecAggServer  # the import needs cryptography

        return SecAggServer(terms, size, send=self._send, drop=self._drop, ended=self._ended, compute=self._compute)

    # Devices cause these calls.

    def report(self, member: Member, report: ReportIn) -> None:
        """Take a report without its masked input: only a report of a failure may come without it."""
        if report.status == Status.OK:
            self._lose(member, "invalid")
            text = "a report of this task must come together with its masked input"
            member.over(StatusError(Status.INVALID_ARGUMENT, text))
        else:
            self._failed(member, report)

    def secure(self, member: Member, message: secagg_pb.ClientToServerWrapperMessage, report: ReportIn | None) -> None:
        """Take a message of secure aggregation."""
        if report is not None and report.status != Status.OK:
            self._failed(member, report)
            return
        if report is not None:
            self._count_code(report)
        if self._server is not None:
            self._server.receive(member.number, message)
            self._look()

    def _failed(self, member: Member, report: ReportIn) -> None:
        """F-060: Remove a device whose plan has failed from the sum."""
        self._count_code(report)
        self._lose(member, "failed")
        member.thank()

    def _lose(self, member: Member, what: str) -> None:
        del self.outstanding[member]
        self.counts[what] += 1
        if what == "dropped":
            # F-013: the conversation was cancelled, or half-closed without a message
            self._count_drop(Drop.CONNECTION_CLOSED)
        if self._server is not None:
            self._server.lost(member.number)
            self._look()

    def _count_drop(self, reason: Drop) -> None:
        self._round_context.tally.secure_drops[self._task.population, self.config.name, self._step, reason.value] += 1

    # Secure aggregation calls these.

    def _send(self, number: int, message: secagg_pb.ServerToClientWrapperMessage) -> None:
        self._in_order[number].tell(Secure(message))

    def _drop(self, number: int, reason: Drop) -> None:
        """Drop a device. It has been sent the reason, unless it left by a message of its own (F-126)."""
        member = self._in_order[number]
        if self.phase is not Phase.REPORTING or member not in self.outstanding:
            return
        # the server may already be in its next round, which it has begun without this device
        self._count_drop(reason)
        del self.outstanding[member]
        text = f"secure aggregation goes on without this client: {reason.value}"
        if reason is Drop.CLIENT_ABORT:
            self.counts["dropped"] += 1
            member.over(StatusError(Status.CANCELLED, text))
        elif reason in _SILENT:
            self.counts["late"] += 1
            member.over(StatusError(Status.ABORTED, text))
        else:
            self.counts["invalid"] += 1
            member.over(StatusError(Status.INVALID_ARGUMENT, text))

    def _ended(self, outcome: Outcome) -> None:
        """Take the outcome: a sum, or the reason why there will be none."""
        if self.phase is not Phase.REPORTING:
            return
        self._server = None
        if isinstance(outcome, Failed):
            self.fail(outcome.reason.value)
            return
        self._move(Phase.AGGREGATING)
        there, self.outstanding = tuple(self.outstanding), {}
        self.pending[self._ordinal] = there
        self.counts["ok"] += len(there)
        self.summed = outcome.clients
        for one in there:
            one.move(Stage.REPORTED)
        self._await_function()
        assert self.config.secagg is not None
        job = partial(serialize, outcome, self.config.secagg.vectors)
        self._round_context.backing.compute(job, self._feed_sum)

    def _feed_sum(self, update: bytes) -> None:
        if self.phase is Phase.AGGREGATING and self._tell is not None:
            self._feed(update, {NUM_CLIENTS: str(self.summed)})
            self._tell(Enough())

    def _compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run a job of secure aggregation; when the job is done, another round may be running."""

        def done(result: Any) -> None:
            if self.phase is Phase.REPORTING:
                then(result)
                self._look()

        self._round_context.backing.compute(job, done)

    def _look(self) -> None:
        """F-133: When a round of secure aggregation begins, start its own time limit."""
        if self._server is not None and self.phase is Phase.REPORTING and self._server.round != self._step:
            self._step = self._server.round
            self._after(self.config.step_s, self._elapsed)

    def _elapsed(self) -> None:
        if self._server is not None:
            self._server.elapsed()
            self._step = -1  # a last round that is not over gets the same time again
            self._look()

    def fail(self, reason: str, error: InvocationError | None = None) -> None:
        """Fail the round, also for a reason outside of secure aggregation, and stop its jobs."""
        server, self._server = self._server, None
        if server is not None:
            server.abandon()
        super().fail(reason, error)

    # The function and its result.

    def close(self) -> None:
        """Close the round, when secure aggregation has ended."""

    @property
    def _needed(self) -> int:
        return 1


def serialize(outcome: Summed, vectors: Mapping[str, tuple[int, int]]) -> bytes:
    """A sum as the message Checkpoint of aggregands (F-130)."""
    message = pb.Checkpoint()
    for name, total in outcome.sums.items():
        aggregand = message.aggregands[name]
        aggregand.bitwidth = (vectors[name][0] - 1).bit_length()
        for start in range(0, len(total), _PIECE):
            aggregand.values.extend(total[start : start + _PIECE].tolist())
    return message.SerializeToString(deterministic=True)
