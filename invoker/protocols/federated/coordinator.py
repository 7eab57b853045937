"""`RoundCoordinator`: all populations of a process, and the devices that talk to it; see `messages.Coordinator`.

Theory. The coordinator is pure: it is called on one loop, never waits, and answers by notices. Its time is injected. It
asks its `Backing` for everything outside of it. A service makes a coordinator, opens populations, calls `tick` when the
backing's `wake` has asked for it, and `leave` whenever a conversation ends, for whatever reason.

It drains in two steps (F-143): `drain` accepts no more devices, and rejects devices that wait or check in, also to
populations that are closed meanwhile. Rounds that have clients continue until the coordinator is no longer `is_busy`;
`stop` ends the rest.
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
        sessions: The most conversations at once (F-139).
        sessions_per_peer: The most conversations at once of one address, where it is known.
        first_message_s: How long a device may be silent, and how long it may wait before a checkin if there is no
            eligibility task (F-014).
        report_bytes: The most bytes of all large messages and reports together; `Gate` says when more bytes are allowed
            (F-081).
    """

    sessions: int = 10_000
    sessions_per_peer: int = 32
    first_message_s: float = 60.0
    report_bytes: int = 64 * 1024 * 1024


class RoundCoordinator:
    """The coordinator of a process.

    Args:
        backing: The service.
        now: A clock in seconds that never goes back.
        limits: The coordinator's limits.
        memory: The budget of the process, against which reports count.

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
        self._closed: dict[str, Population] = {}  # during the drain
        self._members: dict[Device, Member] = {}
        self._peers: Counter[str] = Counter()
        self._is_draining = self._is_stopped = False

    # The service calls these.

    def open(self, setup: PopulationSetup) -> None:
        """Serve a population, each task beginning with its last checkpoint."""
        assert setup.config.name not in self._populations, "a population is opened once"
        self._populations[setup.config.name] = Population(self._round_context, setup)

    def close(self, name: str, error: InvocationError) -> None:
        """Serve a population no more: its rounds fail, and its devices' conversations end with ``error``.

        During a drain only devices of its rounds get this error. Others are rejected when they check in, since
        NOT_FOUND would keep them away for hours.
        """
        population = self._populations.pop(name)
        population.stop("closed", error)
        if self._is_draining:
            self._closed[name] = population
        for member in list(self._members.values()):
            if member.population == name and (member.round is not None or not self._is_draining):
                member.over(error)

    def drain(self) -> None:
        """Accept no more devices, and begin no more rounds."""
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
        """Whether some round has clients, or has not yet been committed."""
        return any(population.is_busy for population in self._populations.values())

    def status(self) -> Sequence[TaskStatus]:
        """The status of each task of all populations."""
        return [task.status() for one in self._populations.values() for task in one.tasks.values()]

    @property
    def held_bytes(self) -> int:
        """Bytes of large messages and reports that no function has taken."""
        return self._gate.held

    def next_tick(self) -> float | None:
        """When `tick` is next due; None: no timer is set."""
        return self._timers.next()

    def tick(self) -> None:
        """Call all timers that are due; `next_tick` gives the time of the next one."""
        self._timers.run()

    # Sessions call these.

    def enter(self, device: Device, metadata: Headers) -> None:
        """Begin a conversation; raises `ShuttingDown` once the coordinator has stopped."""
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
        """When to check in again after an acceptance, and after a rejection."""
        population = self._find(checkin)
        self._members[device].population = population.name
        return population.windows()

    def eligibility(self, device: Device, checkin: Checkin) -> Eligibility | Rejected | None:
        """The eligibility task."""
        member, population = self._members[device], self._find(checkin)
        if member.is_over:
            return Rejected("over")  # its conversation is over; the ending is in its mailbox
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
        """Wait for a round."""
        member, population = self._members[device], self._find(checkin)
        if member.is_over:
            return  # the device's ending is in its mailbox
        member.population = population.name
        reason = population.check_in(member, checkin)
        if reason:
            member.tell(member.reject(reason))

    def report(self, device: Device, report: ReportIn) -> None:
        """Give a plain report."""
        member = self._members[device]
        if member.stage is Stage.ACCEPTED:  # otherwise the device's ending is in its mailbox
            assert member.round is not None
            member.round.report(member, report)

    def secure(self, device: Device, message: secagg_pb.ClientToServerWrapperMessage, report: ReportIn | None) -> None:
        """Give a message of secure aggregation."""
        member = self._members[device]
        if member.stage is Stage.ACCEPTED:
            assert member.round is not None
            member.round.secure(member, message, report)

    def moved(self, device: Device, *, sent: int, received: int) -> None:  # noqa: ARG002 - counts are for all
        """Count bytes of the chunk layer."""
        self.tally.sent += sent
        self.tally.received += received

    def may_receive(self, device: Device, size: int, upto: int) -> bool:
        """Whether ``upto`` bytes of a message may come; a large one may only from a client that was accepted."""
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
        """Note that a message is complete; a report keeps its room until its round has taken it."""
        member = self._members.get(device)
        if member is not None and member.stage is not Stage.REPORTED:
            self._gate.leave(member)

    def leave(self, device: Device) -> None:
        """Remove a device whose conversation is over."""
        member = self._members.pop(device, None)
        if member is None:
            return
        self._peers[member.peer] -= 1
        if not self._peers[member.peer]:
            del self._peers[member.peer]
        is_kept = member.stage is Stage.REPORTED  # the report still counts, so it still needs room
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
    """End the conversation of a device for which its round need not wait."""
    if member.round is not None:
        member.round.leave(member)
    member.over(error)


def _let_go(member: Member, seconds: float) -> None:
    member.over(DeadlineExceeded(f"the device has not checked in within {seconds:g} s"))


def _address(peer: str) -> str:
    """A peer without its port: ``ipv4:192.0.2.1:50000`` gives ``ipv4:192.0.2.1``."""
    head, sign, port = peer.rpartition(":")
    return head if sign and port.isdigit() and ":" in head else peer
