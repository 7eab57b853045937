"""`Population`: devices that run the same tasks; assigns devices to rounds (F-040 to F-046)."""

from __future__ import annotations

import logging
from hmac import compare_digest
from random import Random

import msgspec

from invoker.errors import InvocationError, Status, StatusError
from invoker.message import Headers
from invoker.protocols.federated.assignment import choose, eligible
from invoker.protocols.federated.backing import PopulationSetup, TaskSetup
from invoker.protocols.federated.members import Member, RoundContext
from invoker.protocols.federated.messages import Checkin, Eligibility, Verdict, Window
from invoker.protocols.federated.round import Round
from invoker.protocols.federated.secure import SecureRound
from invoker.protocols.federated.wire.names import API_KEY

log = logging.getLogger(__name__)


class TaskStatus(msgspec.Struct, frozen=True):
    """The status of a task.

    Attributes:
        population: The name of the population.
        task: The name of the task.
        committed: The number of the last committed round.
        phase: The phase of the current round; ``done`` and ``drained``: there is none.
        phase_id: The id of the current round; empty: there is none.
        waiting: How many clients wait for a round.
        outstanding: How many clients have not reported yet.
        reports: How many reports the round has accepted.
    """

    population: str
    task: str
    committed: int
    phase: str
    phase_id: str
    waiting: int
    outstanding: int
    reports: int


class Task:
    """One task: its last checkpoint and its current round."""

    def __init__(self, round_context: RoundContext, population: str, setup: TaskSetup) -> None:
        self.population, self.setup = population, setup
        self.committed = setup.committed
        self.checkpoint = setup.checkpoint
        self.round: Round | None = None
        self.is_closed = False
        self._round_context = round_context
        self._renew()

    @property
    def is_done(self) -> bool:
        """Whether all rounds of the task are committed."""
        return 0 < self.setup.config.rounds <= self.committed

    def dissolved(self, round_: Round) -> None:
        """Begin another selection, since the last one was too small."""
        if self.round is round_:
            self._renew()

    def ended(self, round_: Round, checkpoint: bytes | None) -> None:
        """Begin the next round, from the last round's checkpoint or, if that failed, from the old one (F-082)."""
        if self.round is not round_:
            return
        if checkpoint is not None:
            self.committed = round_.number
            self.checkpoint = self._round_context.backing.publish(checkpoint)
        self._renew()

    def drain(self) -> None:
        """Stop beginning rounds; a round that has clients continues (F-143)."""
        self.is_closed = True
        if self.round is not None and self.round.accepted == 0:
            self.round.dissolve("draining")

    def stop(self, reason: str, error: InvocationError) -> None:
        """Fail the current round, and begin no other one."""
        self.is_closed = True
        if self.round is not None:
            self.round.fail(reason, error)

    def status(self) -> TaskStatus:
        """The status of the task."""
        one, name = self.round, self.setup.config.name
        if one is None:
            phase = "done" if self.is_done else "drained"
            return TaskStatus(self.population, name, self.committed, phase, "", 0, 0, 0)
        return TaskStatus(
            self.population, name, self.committed, one.phase.value, one.phase_id,
            len(one.selection), len(one.outstanding), one.counts["ok"],
        )  # fmt: skip

    def _renew(self) -> None:
        if self.is_closed or self.is_done:
            self.round = None
            return
        kind = SecureRound if self.setup.config.secagg is not None else Round
        self.round = kind(self._round_context, self, self.committed + 1, self.checkpoint)


class Population:
    """One population.

    Args:
        round_context: The objects that all rounds of the coordinator share.
        setup: The population, with the data that the service has loaded.
    """

    def __init__(self, round_context: RoundContext, setup: PopulationSetup) -> None:
        self.setup = setup
        self.config = setup.config
        self.name = setup.config.name
        self.is_draining = False
        self.tasks = {one.config.name: Task(round_context, self.name, one) for one in setup.tasks}
        self._dice = Random(setup.config.seed)  # noqa: S311 - it only chooses tasks (F-046)
        self._eligibility = _eligibility(round_context, setup)

    def check_key(self, metadata: Headers) -> None:
        """F-007: Refuse a client without the population's key.

        Raises:
            StatusError: UNAUTHENTICATED.
        """
        given = metadata.get(API_KEY, "")
        if self.setup.api_key and not compare_digest(given.encode(), self.setup.api_key.encode()):
            raise StatusError(Status.UNAUTHENTICATED, f"the population needs the correct {API_KEY}")

    def windows(self) -> tuple[Window, Window]:
        """The retry windows of a client after an acceptance and after a rejection."""
        of = self.config
        return self._window(of.retry_min_s, of.retry_max_s), self._window(of.rejected_min_s, of.rejected_max_s)

    def _window(self, least_s: float, most_s: float) -> Window:
        tokens = self.setup.tokens
        token = tokens.make(self.name, least_s, most_s) if tokens is not None else ""
        return Window(least_s, most_s, token)

    def eligibility(self, checkin: Checkin) -> Eligibility | str | None:
        """The eligibility task, or the reason why the client is rejected; None: there is no such task (F-040)."""
        reason = self._refusal(checkin)
        if reason:
            return reason
        if all(task.setup.config.secagg for task in self.tasks.values()) and not checkin.can.secagg:
            return "incompatible"
        return self._eligibility

    def check_in(self, member: Member, checkin: Checkin) -> str:
        """Let a client wait for a round; returns the reason if the client is rejected at once."""
        reason = self._refusal(checkin) or self._mismatch(checkin)
        if reason:
            return reason
        weights = eligible(list(self.tasks), checkin.weights)
        if not weights:
            return "ineligible"
        able = {name: weight for name, weight in weights.items() if self._is_able(name, checkin)}
        if not able:
            return "incompatible"
        member.has_token = self._verdict(checkin) is Verdict.IN_WINDOW
        rounds = {name: one for name in able if (one := self.tasks[name].round) is not None}
        if not rounds:
            return "done"
        rooms = [name for name, one in rounds.items() if one.has_room(is_preferred=member.has_token)]
        if not rooms:
            return "full"
        rounds[choose({name: able[name] for name in rooms}, self._dice)].join(member)
        return ""

    def _refusal(self, checkin: Checkin) -> str:
        """The reason why a client is rejected before a task is chosen; empty: it is not rejected."""
        if self.is_draining:
            return "draining"
        if self._verdict(checkin) is Verdict.EARLY:
            return "early"  # F-055
        return "" if self._attested(checkin.attestation) else "attestation"

    def _mismatch(self, checkin: Checkin) -> str:
        if checkin.weights is None:
            return "no_eligibility" if self.setup.eligibility is not None else ""  # F-041
        return "" if checkin.weights_version == 1 else "eligibility_version"  # F-045

    def _verdict(self, checkin: Checkin) -> Verdict:
        tokens = self.setup.tokens
        if tokens is None or not checkin.retry_token:
            return Verdict.ABSENT
        return tokens.judge(self.name, checkin.retry_token)

    def _attested(self, measurement: str) -> bool:
        """D17: Whether the operator's function accepts the measurement; an exception counts as no."""
        if self.setup.attest is None:
            return True
        try:
            return self.setup.attest(measurement) is True
        except Exception:
            log.warning("the attestation function raised", exc_info=True, extra={"population": self.name})
            return False

    def _is_able(self, name: str, checkin: Checkin) -> bool:
        """F-088: Whether the client can run the task, which may need secure aggregation."""
        return checkin.can.secagg or self.tasks[name].setup.config.secagg is None

    # The end of the population.

    def drain(self) -> None:
        """Stop accepting clients (F-143)."""
        self.is_draining = True
        for task in self.tasks.values():
            task.drain()

    def stop(self, reason: str, error: InvocationError) -> None:
        """Fail all rounds; their devices get ``error``."""
        self.is_draining = True
        for task in self.tasks.values():
            task.stop(reason, error)

    @property
    def is_busy(self) -> bool:
        """Whether a round of the population has clients."""
        return any(task.round is not None and task.round.accepted > 0 for task in self.tasks.values())


def _eligibility(round_context: RoundContext, setup: PopulationSetup) -> Eligibility | None:
    """Make the eligibility task, once for all clients, so that each form of it is packed once (F-048)."""
    task = setup.eligibility
    if task is None:
        return None
    return Eligibility(round_context.backing.new_id(), task.plan, task.checkpoint, task.spec)
