"""`RoundCoordinator`: all populations of a process and the connected devices; see `messages.Coordinator`.

Theory. The coordinator does no I/O: it is called on one event loop, never waits, and answers by notices. Its clock is
injected, and its `Backing` does everything else. A service makes a coordinator and opens populations. It calls `tick`
at the times that `wake` of the backing was called with, and `leave` when a conversation has ended in any way.

It drains in two steps (F-143). After `drain`, no more devices are accepted; devices that wait or check in are rejected,
even if their population was closed meanwhile. Rounds that have clients continue until `is_busy` is false, and `stop`
ends the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.core.budget import ProcessBudget
from invoker.core.peers import PEER
from invoker.core.timers import Timers
from invoker.errors import (
    DeadlineExceeded,
    InvocationError,
    LimitExceeded,
    ShuttingDown,
    Status,
    StatusError,
)
from invoker.message import Headers
from invoker.protocols.federated.backing import Backing, PopulationSetup
from invoker.protocols.federated.gate import SMALL_BYTES, Gate
from invoker.protocols.federated.members import Member, RoundContext, Stage
from invoker.protocols.federated.messages import (
    Checkin,
    Device,
    Eligibility,
    Rejected,
    ReportIn,
    Resume,
    Window,
)
from invoker.protocols.federated.population import Population, TaskStatus
from invoker.protocols.federated.tally import Tally
from invoker.protocols.federated.wire.names import POPULATION_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorLimits:
    """The limits of a coordinator.

    Attributes:
        sessions: How many conversations there may be at once (F-139).
        sessions_per_peer: How many conversations there may be at once from one address, if the address is known.
        first_message_s: How many seconds a device may take until its first message, and until its checkin if there is
            no eligibility task (F-014).
        report_bytes: How many bytes all large messages and reports may have together, with the exceptions in `Gate`
            (F-081).
    """

    sessions: int = 10_000
    sessions_per_peer: int = 32
    first_message_s: float = 60.0
    report_bytes: int = 64 * 1024 * 1024


class RoundCoordinator:
    """The coordinator of a process.

    Args:
        backing: The operations of the service.
        now: A monotonic clock, in seconds.
        limits: The coordinator's limits.
        memory: The budget of the process, in which reports count.

    Attributes:
        tally: The counts of this process.
    """

    def __init__(
        self,
        backing: Backing,
        now: Callable[[], float],
        limits: CoordinatorLimits | None = None,
        *,
        memory: ProcessBudget | None = None,
    ) -> None:
        self.tally = Tally()
        self._limits = limits or CoordinatorLimits()
        self._timers = Timers(now, backing.wake)
        self._gate: Gate[Member] = Gate(
            self._limits.report_bytes, self._timers, owner=_owner, resume=_resume, put_out=_cut_off, memory=memory
        )  # fmt: skip
        self._round_context = RoundContext(backing, self._timers, self.tally, self._gate)
        self._populations: dict[str, Population] = {}
        self._closed: dict[str, Population] = {}  # populations that were closed during the drain
        self._members: dict[Device, Member] = {}
        self._peers: Counter[str] = Counter()
        self._is_draining = self._is_stopped = False

    # Methods for the service.

    def open(self, setup: PopulationSetup) -> None:
        """Start to serve a population; each task starts from its last checkpoint."""
        assert setup.config.name not in self._populations, "a population must not be opened twice"
        self._populations[setup.config.name] = Population(self._round_context, setup)

    def close(self, name: str, error: InvocationError) -> None:
        """Stop serving a population: its rounds fail, and its devices' conversations end with ``error``.

        During a drain only the devices of its rounds get this error. Other devices are rejected when they check in,
        since after NOT_FOUND they would not return for hours.
        """
        population = self._populations.pop(name)
        population.stop("closed", error)
        if self._is_draining:
            self._closed[name] = population
        for member in list(self._members.values()):
            if member.population == name and (member.round is not None or not self._is_draining):
                member.over(error)

    def drain(self) -> None:
        """Stop accepting devices and beginning rounds."""
        self._is_draining = True
        for population in self._populations.values():
            population.drain()

    def stop(self) -> None:
        """End all conversations and rounds with `ShuttingDown`."""
        self.drain()
        self._is_stopped = True
        for name in list(self._populations):
            self.close(name, ShuttingDown("the process stops"))
        for member in list(self._members.values()):
            member.over(ShuttingDown("the process stops"))

    @property
    def is_busy(self) -> bool:
        """Whether a round has clients, or is not yet committed."""
        return any(population.is_busy for population in self._populations.values())

    def status(self) -> Sequence[TaskStatus]:
        """The status of each task of all populations."""
        return [task.status() for one in self._populations.values() for task in one.tasks.values()]

    @property
    def held_bytes(self) -> int:
        """How many bytes of large messages and reports no function has taken yet."""
        return self._gate.held

    def next_tick(self) -> float | None:
        """The time of the next timer; None: no timer is set."""
        return self._timers.next()

    def tick(self) -> None:
        """Run all timers that are due."""
        self._timers.run()

    # Methods for sessions.

    def enter(self, device: Device, metadata: Headers) -> None:
        """Begin a conversation; raises `ShuttingDown` after `stop`."""
        if self._is_stopped:
            raise ShuttingDown("this process takes no more devices")
        named = self._populations.get(metadata.get(POPULATION_KEY, ""))
        if named is not None:
            named.check_key(metadata)
        peer = _address(metadata.get(PEER, ""))
        if len(self._members) >= self._limits.sessions:
            raise LimitExceeded(f"{self._limits.sessions} devices are connected, and no more are allowed")
        if peer and self._peers[peer] >= self._limits.sessions_per_peer:
            raise LimitExceeded(f"{self._peers[peer]} devices of this address are connected, and no more are allowed")
        member = self._members[device] = Member(self._round_context, device, peer)
        self._peers[peer] += 1
        self._await_checkin(member, self._limits.first_message_s)

    def windows(self, device: Device, checkin: Checkin) -> tuple[Window, Window]:
        """The retry windows after an acceptance and after a rejection."""
        population = self._find(checkin)
        self._members[device].population = population.name
        return population.windows()

    def eligibility(self, device: Device, checkin: Checkin) -> Eligibility | Rejected | None:
        """The eligibility task of the population; None: there is none."""
        member, population = self._members[device], self._find(checkin)
        if member.is_over:
            return Rejected("over")  # the conversation has already ended, and the mailbox has the end
        member.population = population.name
        task = population.eligibility(checkin)
        if isinstance(task, str):
            return member.reject(task)
        if task is not None:
            member.move(Stage.ELIGIBLE)
            self._await_checkin(member, population.config.eligibility_timeout_s)
        else:
            self._await_checkin(member, self._limits.first_message_s)
        return task

    def check_in(self, device: Device, checkin: Checkin) -> None:
        """Let a device wait for a round, or reject it with a notice."""
        member, population = self._members[device], self._find(checkin)
        if member.is_over:
            return  # the conversation has already ended, and the mailbox has the end
        member.population = population.name
        reason = population.check_in(member, checkin)
        if reason:
            member.tell(member.reject(reason))

    def report(self, device: Device, report: ReportIn) -> None:
        """Pass a plain report to the device's round."""
        member = self._members[device]
        if member.stage is Stage.ACCEPTED:  # otherwise the mailbox already has the end of the conversation
            assert member.round is not None
            member.round.report(member, report)

    def secure(self, device: Device, message: secagg_pb.ClientToServerWrapperMessage, report: ReportIn | None) -> None:
        """Pass a message of secure aggregation to the device's round."""
        member = self._members[device]
        if member.stage is Stage.ACCEPTED:
            assert member.round is not None
            member.round.secure(member, message, report)

    def moved(self, device: Device, *, sent: int, received: int) -> None:  # noqa: ARG002 - bytes are not counted by device
        """Count bytes that the chunk layer has sent and received."""
        self.tally.sent += sent
        self.tally.received += received

    def may_receive(self, device: Device, size: int, upto: int) -> bool:
        """Whether ``upto`` bytes of a message may be received; a large message only from a client in a round."""
        member = self._members[device]
        if size > SMALL_BYTES and member.stage is not Stage.ACCEPTED:
            text = (
                f"a message of {size} bytes from a client that takes no part in a round exceeds the limit "
                f"of {SMALL_BYTES} bytes"
            )
            _cut_off(member, LimitExceeded(text))
            return False
        return self._gate.ask(member, size, upto)

    def received(self, device: Device) -> None:
        """Give back the room of a complete message; a report keeps its room until its round has taken it."""
        member = self._members.get(device)
        if member is not None and member.stage is not Stage.REPORTED:
            self._gate.leave(member)

    def leave(self, device: Device) -> None:
        """Remove a device whose conversation has ended."""
        member = self._members.pop(device, None)
        if member is None:
            return
        self._peers[member.peer] -= 1
        if not self._peers[member.peer]:
            del self._peers[member.peer]
        is_kept = member.stage is Stage.REPORTED  # the report still counts, so it keeps its room
        if member.round is not None:
            member.round.leave(member)
        member.forget()
        if not is_kept:
            self._gate.leave(member)

    def _find(self, checkin: Checkin) -> Population:
        """The population that a checkin names, if the client may use it.

        Raises:
            StatusError: NOT_FOUND (F-005), INVALID_ARGUMENT (F-006) or UNAUTHENTICATED (F-007).
        """
        population = self._populations.get(checkin.population) or self._closed.get(checkin.population)
        if population is None:
            raise StatusError(Status.NOT_FOUND, f"there is no population {checkin.population!r}")
        named = checkin.metadata.get(POPULATION_KEY, "")
        if named and named != checkin.population:
            text = f"the metadata name the population {named!r}, the checkin names {checkin.population!r}"
            raise StatusError(Status.INVALID_ARGUMENT, text)
        population.check_key(checkin.metadata)
        return population

    def _await_checkin(self, member: Member, seconds: float) -> None:
        member.limit(seconds, partial(_let_go, member, seconds))


def _owner(member: Member) -> str:
    return member.population


def _resume(member: Member) -> None:
    member.tell(Resume())


def _cut_off(member: Member, error: InvocationError) -> None:
    """Remove a device from its round, and end its conversation."""
    if member.round is not None:
        member.round.leave(member)
    member.over(error)


def _let_go(member: Member, seconds: float) -> None:
    member.over(DeadlineExceeded(f"the device has not checked in within {seconds:g} s"))


def _address(peer: str) -> str:
    """The address of a peer without the port: ``ipv4:192.0.2.1`` for ``ipv4:192.0.2.1:50000``."""
    head, sign, port = peer.rpartition(":")
    return head if sign and port.isdigit() and ":" in head else peer
