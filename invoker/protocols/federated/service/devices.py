"""`DeviceReactor`: runs the conversation of one device, here or, by a relay, at the leader of its population."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import grpc.aio
from google.protobuf.message import DecodeError

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.core.steps import Close
from invoker.errors import Cancelled, InvocationError, Status, StatusError
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.wire import Wire
from invoker.message import Headers
from invoker.protocols.federated.service.relay import Relay
from invoker.protocols.federated.service.round_leadership import Leader, RoundLeadership
from invoker.protocols.federated.session import OUTSIDE_BYTES, DeviceSession

_UNDECIDED_S: Final = 15.0
"""How many seconds a device waits for a new leader of its population; the lease of a leader that hangs is shorter."""


class Place(Protocol):
    """The methods of `Rounds` that a conversation needs."""

    path: str

    def leadership(self, population: str) -> RoundLeadership | None:
        """The leadership of a population; None: there is no such population, and the coordinator refuses the device."""

    def channel(self, leader: Leader) -> grpc.aio.Channel:
        """The gRPC channel to the process that leads a population."""


class DeviceReactor(Reactor):
    """Runs one conversation.

    The conversation begins in this process, so that its limits apply from the start. The first checkin names a
    population. If another process leads that population, the session is dropped, and a relay carries the conversation
    to that process.

    Args:
        session: Translates the frames.
        wire: The connection to the device.
        driver: The driver of this process.
        on_close: Called once with the end.
        place: The rounds of this process, which know the leaders.
        metadata: The metadata of the call.
        deadline: The deadline of the call, on the clock of ``time.monotonic``; None: it has none.
        is_relayed: Whether another process relays the conversation to this one as the leader.
    """

    def __init__(
        self,
        session: DeviceSession,
        wire: Wire,
        driver: Driver,
        on_close: Callable[[Close], None],
        *,
        place: Place,
        metadata: Headers,
        deadline: float | None = None,
        is_relayed: bool = False,
    ) -> None:
        super().__init__(session, wire, driver, on_close, deadline=deadline)
        self._device = session
        self._place = place
        self._metadata = metadata
        self._relay: Relay | None = None
        self._landing: asyncio.Task[None] | None = None
        self._rest: asyncio.Task[None] | None = None
        self._has_landed = False
        self._is_relayed = is_relayed
        for step in session.begin():
            self._perform(step)

    # The interface of listeners.

    @property
    def settles(self) -> bool:
        """Always true: a lost connection must not look like a half-close, which keeps a device in its round (F-013)."""
        return True

    def arrived(self, frame: Any | None) -> bool:
        """Translate one frame, or pass it to the relay."""
        if self._relay is not None:
            return self._relay.arrived(frame)
        if self._has_landed or self._is_closed or frame is None:
            return self._apply(frame)
        population = _population(frame)
        leadership = None if population is None else self._place.leadership(population)
        if leadership is None:
            return self._apply(frame)
        return self._land(frame, leadership)

    def gone(self) -> None:
        """End the conversation, since the connection is lost."""
        if self._landing is not None:
            self._landing.cancel()
        if self._relay is not None:
            self._relay.gone()
        else:
            super().gone()

    def fail(self, error: InvocationError) -> None:
        """End the conversation, in this process or at the leader."""
        if self._relay is not None:
            self._relay.fail(error)
        else:
            super().fail(error)

    def _close(self, close: Close) -> None:
        """End the conversation in this process (F-012, F-013)."""
        if not self._is_closed:
            self._device.coordinator.leave(self._device)
            self._device.release()
            if self._rest is not None:
                self._rest.cancel()
        super()._close(close)

    # How fast a device may send.

    def _apply(self, frame: Any | None) -> bool:
        """Translate a frame.

        Reading pauses while the device does not read, since each of its chunks causes an ack.
        """
        self._has_room = True
        is_wanted = super().arrived(frame)
        if self._has_room or self._is_closed:
            return is_wanted
        if self._rest is None:
            self._rest = asyncio.get_running_loop().create_task(self._wait_for_room(), name="room")
        return False

    async def _wait_for_room(self) -> None:
        await self.wire.room()
        self._rest = None
        if not self._is_closed:
            self.wire.ask()

    # Relaying to the leader.

    def _land(self, frame: bytes, leadership: RoundLeadership) -> bool:
        # F-143: if this process was the leader, the device is rejected at once
        if leadership.is_here or leadership.has_led:
            self._has_landed = True
            return self._apply(frame)
        if leadership.leader is not None and not self._is_relayed:
            return self._go(leadership.leader).arrived(frame)
        if self._is_relayed or leadership.has_left:
            self.fail(_homeless())
            return True
        self._landing = asyncio.get_running_loop().create_task(self._wait(frame, leadership), name="landing")
        return False

    async def _wait(self, frame: bytes, leadership: RoundLeadership) -> None:
        """Hold the first frame until there is a leader."""
        is_decided = await leadership.decided(_UNDECIDED_S)
        self._landing = None
        if self._is_closed:
            return
        if not is_decided:
            self.fail(_homeless())
        elif self._land(frame, leadership):
            self.wire.ask()

    def _go(self, leader: Leader) -> Relay:
        left_s = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        self._relay = relay = Relay(
            self._place.path, self._place.channel(leader), leader, self._metadata,
            self.wire, self.driver, self._on_close, deadline_s=left_s,
        )  # fmt: skip
        self._on_close = _ignore
        super()._leave(Cancelled("the conversation goes on in another process"))
        return relay


def _homeless() -> InvocationError:
    return StatusError(Status.UNAVAILABLE, "no process runs the rounds of this population now; try again")


def _ignore(_: Close) -> None:
    """Do nothing: the relay reports the end to the device."""


def _population(frame: bytes) -> str | None:
    """The population that a checkin names; None: the frame is not a valid checkin."""
    if len(frame) > OUTSIDE_BYTES:
        return None
    try:
        message = pb.ClientStreamMessage.FromString(frame)
    except DecodeError:
        return None
    kind = message.WhichOneof("kind")
    if kind == "checkin_request":
        return message.checkin_request.population_name
    if kind == "eligibility_eval_checkin_request":
        return message.eligibility_eval_checkin_request.population_name
    return None
