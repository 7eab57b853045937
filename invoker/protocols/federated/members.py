"""`Member`: a device that is connected to the coordinator, and its stage.

Theory. A device gets exactly one last answer: it is rejected, its report is taken, or its conversation ends with an
error. After one of the first two it has time to half-close; then its conversation ends with OK (F-015). Most stages
have a time limit::

    stage      means                                         left by
    ---------  --------------------------------------------  ---------------------------------------------------------
    ENTERED    it has not checked in                         a checkin; 60 s later, DEADLINE_EXCEEDED (F-014)
    ELIGIBLE   it has the eligibility task                   a checkin; its time limit, DEADLINE_EXCEEDED
    WAITING    it waits for a round                          the round's decision
    ACCEPTED   its round waits for its report                a report; the end of reporting, ABORTED (F-016)
    REPORTED   its round has its report and feeds it         `ReportTaken`; the round's failure, ABORTED
    ANSWERED   it has its last answer, and should half-close its half-close; 5 s later, OK
    OVER       its conversation has ended                    `leave`
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, Protocol

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.core.timers import Timer, Timers
from invoker.errors import InvocationError
from invoker.protocols.federated.backing import Backing
from invoker.protocols.federated.gate import Gate
from invoker.protocols.federated.messages import (
    Accepted,
    Device,
    Notice,
    Offer,
    Over,
    Rejected,
    ReportIn,
    ReportTaken,
)
from invoker.protocols.federated.tally import Tally

HALF_CLOSE_S: Final = 5.0


class Stage(enum.Enum):
    """The stages of a device; the value is a label of metrics."""

    ENTERED = "entered"
    ELIGIBLE = "eligible"
    WAITING = "waiting"
    ACCEPTED = "accepted"
    REPORTED = "reported"
    ANSWERED = "answered"
    OVER = "over"


class Party(Protocol):
    """The methods of a round that the coordinator calls for a device."""

    def report(self, member: Member, report: ReportIn) -> None:
        """Handle a report that came without a message of secure aggregation."""

    def secure(self, member: Member, message: secagg_pb.ClientToServerWrapperMessage, report: ReportIn | None) -> None:
        """Handle a message of secure aggregation."""

    def leave(self, member: Member) -> None:
        """Remove a device whose conversation has ended."""


class RoundContext:
    """The objects that all devices and rounds of a coordinator share.

    Attributes:
        backing: The operations of the service.
        timers: The timers.
        tally: The counts of this process.
        gate: The room for reports.
    """

    __slots__ = ("backing", "gate", "tally", "timers")

    def __init__(self, backing: Backing, timers: Timers, tally: Tally, gate: Gate[Member]) -> None:
        self.backing, self.timers, self.tally, self.gate = backing, timers, tally, gate


class Member:
    """A connected device, as the coordinator sees it.

    Attributes:
        device: The session of the device.
        peer: The address of the device, without the port.
        stage: The stage of the conversation.
        population: The population to which it checked in; empty: none.
        has_token: Whether its retry token is within its window, so that the device is preferred (F-055).
        round: The round for which it waits or in which it takes part; None: none.
        number: The number of the device in its round, for secure aggregation.
    """

    __slots__ = ("_limit", "_round_context", "device", "has_token", "number", "peer", "population", "round", "stage")

    def __init__(self, round_context: RoundContext, device: Device, peer: str) -> None:
        self._round_context = round_context
        self._limit: Timer | None = None
        self.device, self.peer = device, peer
        self.stage = Stage.ENTERED
        self.population = ""
        self.has_token = False
        self.round: Party | None = None
        self.number = 0
        round_context.tally.states[self.stage.value] += 1

    @property
    def is_over(self) -> bool:
        """Whether the device has its last answer, or its conversation has ended."""
        return self.stage in (Stage.ANSWERED, Stage.OVER)

    def move(self, stage: Stage) -> None:
        """Enter another stage, which has no time limit until `limit` is called."""
        states = self._round_context.tally.states
        states[self.stage.value] -= 1
        states[stage.value] += 1
        self.stage = stage
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def limit(self, seconds: float, action: Callable[[], None]) -> None:
        """Set the time limit of the stage: ``action`` is called if the stage still lasts after ``seconds``."""
        if self._limit is not None:
            self._limit.cancel()
        self._limit = self._round_context.timers.after(seconds, action)

    def tell(self, notice: Notice) -> None:
        """Send a notice to the session, unless its conversation has ended."""
        if self.stage is not Stage.OVER:
            self.device.mailbox.put(notice)

    def accept(self, offer: Offer) -> None:
        """Count the device as accepted, and send it the offer of its round."""
        self.move(Stage.ACCEPTED)
        self._round_context.tally.accepted[self.population, offer.task] += 1
        self.tell(Accepted(offer))

    def reject(self, reason: str) -> Rejected:
        """Count the device as rejected; returns the notice, which the caller sends to the session."""
        self._round_context.tally.rejected[self.population, reason] += 1
        self._answered()
        return Rejected(reason)

    def thank(self) -> None:
        """Send `ReportTaken`, after the report was taken, or was counted as failed."""
        if not self.is_over:
            self._answered()
            self.tell(ReportTaken())

    def over(self, error: InvocationError | None) -> None:
        """End the conversation, unless the device already has its last answer."""
        if not self.is_over:
            self.cut(error)

    def cut(self, error: InvocationError | None) -> None:
        """End the conversation, even if the device already has its last answer."""
        if self.stage is not Stage.OVER:
            self.tell(Over(error))
            self.round = None
            self.move(Stage.OVER)

    def forget(self) -> None:
        """Stop the timer and send no more notices, since the device has left."""
        if not self.is_over:
            self._round_context.tally.dropped[self.stage.value] += 1
        self.move(Stage.OVER)
        self.round = None
        self._round_context.tally.states[Stage.OVER.value] -= 1

    def _answered(self) -> None:
        self.round = None
        self.move(Stage.ANSWERED)
        self.limit(HALF_CLOSE_S, self._let_go)

    def _let_go(self) -> None:
        self.cut(None)
