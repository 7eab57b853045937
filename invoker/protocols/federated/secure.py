"""`SecureRound`: a round whose masked reports are added up, so that no single report can be seen (F-088 to F-133).

In the phase REPORTING a `SecAggServer` leads the devices through the four rounds of secure aggregation. This object
passes messages between that server and the devices, and sets the time limits: each of the four rounds has
`TaskConfig.step_s`; the training is part of the first one. A device that is dropped gets the reason, and the round
continues without it. At the end the function gets the sum as its only message (F-130); when it has taken the sum, the
remaining devices are answered (F-094). Without a sum, the round has failed (F-124).

The masked input of a device stays in the sum even if the device leaves or is dropped later (F-122). So `summed` of a
record may be larger than the number of reports that were answered.
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
"""How many elements are copied at once; other threads can run in between."""

_SILENT: Final = (Drop.SILENT_KEYS, Drop.SILENT_SHARES, Drop.SILENT_INPUT)


class SecureRound(Round):
    """One round with secure aggregation; see the module's docstring."""

    _server: SecAggServer | None = None
    _step = -1  # the current one of the four rounds of secure aggregation

    @property
    def _least_clients(self) -> int:
        assert self.config.secagg is not None
        return max(self.config.min_clients, self.config.secagg.min_visible)

    def _terms(self, clients: int) -> SecAggTerms:
        """The terms for this number of clients, on which the threshold depends; ``expected`` is the largest number."""
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
        from invoker.protocols.federated.secagg.server import SecAggServer  # imported late, since it needs cryptography

        return SecAggServer(terms, size, send=self._send, drop=self._drop, ended=self._ended, compute=self._compute)

    # Calls that devices cause.

    def report(self, member: Member, report: ReportIn) -> None:
        """Handle a report without a masked input, which is only allowed for a failure."""
        if report.status == Status.OK:
            self._lose(member, "invalid")
            text = "a report of this task must come together with its masked input"
            member.over(StatusError(Status.INVALID_ARGUMENT, text))
        else:
            self._failed(member, report)

    def secure(self, member: Member, message: secagg_pb.ClientToServerWrapperMessage, report: ReportIn | None) -> None:
        """Handle a message of secure aggregation."""
        if report is not None and report.status != Status.OK:
            self._failed(member, report)
            return
        if report is not None:
            self._count_code(report)
        if self._server is not None:
            self._server.receive(member.number, message)
            self._look()

    def _failed(self, member: Member, report: ReportIn) -> None:
        """F-060: Exclude a device whose plan failed."""
        self._count_code(report)
        self._lose(member, "failed")
        member.thank()

    def _lose(self, member: Member, what: str) -> None:
        del self.outstanding[member]
        self.counts[what] += 1
        if what == "dropped":
            # F-013: the conversation was cancelled, or was half-closed before the report
            self._count_drop(Drop.CONNECTION_CLOSED)
        if self._server is not None:
            self._server.lost(member.number)
            self._look()

    def _count_drop(self, reason: Drop) -> None:
        self._round_context.tally.secure_drops[self._task.population, self.config.name, self._step, reason.value] += 1

    # Callbacks of secure aggregation.

    def _send(self, number: int, message: secagg_pb.ServerToClientWrapperMessage) -> None:
        self._in_order[number].tell(Secure(message))

    def _drop(self, number: int, reason: Drop) -> None:
        """Drop a device; it was sent the reason, unless it left by an abort of its own (F-126)."""
        member = self._in_order[number]
        if self.phase is not Phase.REPORTING or member not in self.outstanding:
            return
        # the server may already have begun its next round without this device
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
        """Handle the outcome: feed the sum to the function, or fail the round."""
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
        """Run a job of secure aggregation; another of the four rounds may have begun after it."""

        def done(result: Any) -> None:
            if self.phase is Phase.REPORTING:
                then(result)
                self._look()

        self._round_context.backing.compute(job, done)

    def _look(self) -> None:
        """F-133: When another of the four rounds has begun, start its time limit."""
        if self._server is not None and self.phase is Phase.REPORTING and self._server.round != self._step:
            self._step = self._server.round
            self._after(self.config.step_s, self._elapsed)

    def _elapsed(self) -> None:
        if self._server is not None:
            self._server.elapsed()
            self._step = -1  # if the last of the four rounds has not ended, it gets the same time again
            self._look()

    def fail(self, reason: str, error: InvocationError | None = None) -> None:
        """Fail the round for any reason, and stop the jobs of secure aggregation."""
        server, self._server = self._server, None
        if server is not None:
            server.abandon()
        super().fail(reason, error)

    # The function and its result.

    def close(self) -> None:
        """Close the round after secure aggregation has ended."""

    @property
    def _needed(self) -> int:
        return 1


def serialize(outcome: Summed, vectors: Mapping[str, tuple[int, int]]) -> bytes:
    """Serialise a sum as a Checkpoint message of aggregands (F-130)."""
    message = pb.Checkpoint()
    for name, total in outcome.sums.items():
        aggregand = message.aggregands[name]
        aggregand.bitwidth = (vectors[name][0] - 1).bit_length()
        for start in range(0, len(total), _PIECE):
            aggregand.values.extend(total[start : start + _PIECE].tolist())
    return message.SerializeToString(deterministic=True)
