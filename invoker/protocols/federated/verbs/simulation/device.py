"""A conversation of a simulated device: the real sessions of a device and of the server, without a network.

Frames are delayed by the device's latency in both directions, and keep their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final, Protocol

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.core.steps import Close
from invoker.errors import Status
from invoker.protocols.federated.client.messages import (
    Assigned,
    Attempt,
    Compute,
    EligibilityAsked,
    Event,
    Hello,
    NewSecAgg,
    SecAgg,
    SecAggTask,
    Turn,
)
from invoker.protocols.federated.client.session import DeviceSession
from invoker.protocols.federated.client.windows import Windows
from invoker.protocols.federated.verbs.simulation.chances import Chances
from invoker.protocols.federated.verbs.simulation.simulated_server import House
from invoker.protocols.federated.verbs.simulation.work import Work

WAITING: Final = "waiting"
BEFORE: Final = "before report"
_PLAIN: Final = (WAITING, BEFORE)
_ASKED: Final = {"share_keys_request": "R1", "masked_input_request": "R2", "unmasking_request": "R3"}
LEAVES: Final = (WAITING, BEFORE, "R0", *_ASKED.values())
"""The points at which a device may leave. R0 to R3: it does not answer in this round of secure aggregation."""

_EARLY_S: Final = 1e-6


class Means(Protocol):
    """The objects that conversations of a population share.

    Attributes:
        house: The simulated server.
        population: The name of the population.
        work: Runs plans.
        chances: The random choices: durations, and whether a device leaves.
        new_secagg: Makes a device's side of secure aggregation; None: no task needs it.
    """

    house: House
    population: str
    work: Work
    chances: Chances
    new_secagg: NewSecAgg | None

    def accepted(self, one: Conversation) -> None:
        """Called when a device has got its acceptance."""

    def left(self, one: Conversation) -> None:
        """Called when a device has left while the server waits for it."""

    def ended(self, one: Conversation, attempt: Attempt, *, has_left: bool) -> None:
        """Called when a conversation has ended; ``has_left``: the device left, and the server did not end it."""


class Conversation:
    """One conversation of a simulated device.

    Args:
        means: The objects that the conversation needs.
        number: The number of the device.
        token: The retry token to send.
        dice: The random generator of this conversation.

    Attributes:
        number: The number of the device.
        phase_id: The id of the round in which the device takes part; empty: none.
        dice: The random generator of this conversation.
        began: When the conversation began, in simulated seconds.
        accepted_at: When the device got its acceptance.
        reported_at: When the device got the answer to its report, or the end of the conversation.
        leaves: The point at which the device leaves; empty: it stays.
    """

    def __init__(self, means: Means, number: int, token: str, dice: Random) -> None:
        self.number, self.phase_id = number, ""
        self._loop = asyncio.get_running_loop()
        self.began = self._loop.time()
        self.accepted_at = self.reported_at = 0.0
        self._means, self.dice = means, dice
        self._train_s, latency_s = means.chances.train_s.draw(dice), means.chances.latency.draw(dice)
        points = LEAVES if means.new_secagg is not None else _PLAIN
        self.leaves = dice.choice(points) if dice.random() < means.chances.dropout else ""
        hello = Hello(means.population, token, client_version="simulate", has_secagg=means.new_secagg is not None)
        self._session = DeviceSession(hello, Windows(self._loop.time, dice), new_secagg=self._new_secagg)
        self._timers: list[asyncio.TimerHandle] = []
        self._has_left = self._has_half_closed = self._is_closed = False
        self._up = _Lane(latency_s, self._to_server)
        self._down = _Lane(latency_s, self._to_device)
        self._reactor = means.house.connect(means.population, _Wire(self._down.put), self._close)

    def start(self) -> None:
        """Check in, and set the time at which the device leaves, if it will."""
        self._session.start()
        self._flush()
        if self.leaves == WAITING:
            self._after(self.dice.expovariate(1.0), self._leave)

    # The connection.

    def _flush(self) -> None:
        """Send the frames of the session, and half-close after the last one."""
        for frame in self._session.drain():
            self._up.put(frame)
        if self._session.is_over and not self._has_half_closed:
            self._has_half_closed = True
            self._up.put(None)

    def _to_server(self, frame: Any) -> None:
        if frame is _GONE:
            if not self._is_closed:
                self._means.left(self)
                self._reactor.gone()
            self._end()
        elif not self._is_closed:
            self._reactor.arrived(frame)

    def _close(self, close: Close) -> None:
        """Handle the end of the conversation from the server."""
        self._is_closed = True
        self._down.put(close)

    def _to_device(self, item: Any) -> None:
        if isinstance(item, Close):
            if not self._has_left:
                error = item.error
                self._session.ended(Status.OK if error is None else error.status, str(error or ""))
                self._end()
        elif not self._has_left:
            for event in self._session.receive(item):
                self._answer(event)
            if self._session.has_ended and not self.reported_at:
                self.reported_at = self._loop.time()
            self._flush()

    def _end(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._means.ended(self, self._session.attempt(), has_left=self._has_left)

    # The device's part.

    def _answer(self, event: Event) -> None:
        if isinstance(event, EligibilityAsked):
            self._session.eligible(self._means.work.eligible(self.number, event))
        elif isinstance(event, Compute):
            self._session.computed(event.job())
        else:
            self.phase_id, self.accepted_at = event.phase_id, self._loop.time()
            self._means.accepted(self)
            if self.leaves in _PLAIN:
                self._after(self._train_s * self.dice.random(), self._leave)
            self._after(self._train_s, lambda: self._train(event))

    def _train(self, assigned: Assigned) -> None:
        if self.leaves == "R0":
            if assigned.secagg is None:
                self.leaves = BEFORE
            self._leave()
        elif not self._has_left and not self._session.has_ended:
            # the drawn point is a round of secure aggregation, which this task does not use
            if assigned.secagg is None and self.leaves:
                self._leave(BEFORE)
                return
            self._session.report(self._means.work.report(self.number, assigned, self._train_s))
            self._flush()

    def _leave(self, where: str = "") -> None:
        """Leave without a message, as by a lost connection."""
        if self._has_left or self._session.has_ended:
            return
        if self.leaves == WAITING and self.phase_id:
            where = BEFORE
        self.leaves = where or self.leaves
        self._has_left = True
        self._session.fail(Status.CANCELLED, "the device has left")
        self._up.put(_GONE)

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, action))

    def _new_secagg(self, task: SecAggTask, vectors: Any) -> SecAgg:
        assert self._means.new_secagg is not None
        return _Watched(self._means.new_secagg(task, vectors), self._may_answer)

    def _may_answer(self, asked: str) -> bool:
        """Whether the device answers a request of secure aggregation; if not, it leaves."""
        if asked and self.leaves == _ASKED.get(asked):
            self._loop.call_soon(self._leave)
            return False
        return True


class _Watched:
    """Wraps the device's side of secure aggregation, so that the device can leave in a round."""

    def __init__(self, secagg: SecAgg, may_answer: Callable[[str], bool]) -> None:
        self._secagg, self._may_answer = secagg, may_answer

    def start(self) -> Turn:
        return self._secagg.start()

    def receive(self, message: secagg_pb.ServerToClientWrapperMessage) -> Turn:
        if not self._may_answer(message.WhichOneof("message_content") or ""):
            return Turn()
        return self._secagg.receive(message)

    def abort(self, reason: str) -> Turn:
        return self._secagg.abort(reason)


class _Lane:
    """One direction of a connection: items arrive in order, each after the latency."""

    def __init__(self, delay_s: float, arrive: Callable[[Any], None]) -> None:
        self._delay_s, self._arrive = delay_s, arrive
        self._loop = asyncio.get_running_loop()
        self._items: deque[tuple[float, Any]] = deque()

    def put(self, item: Any) -> None:
        """Send an item, which arrives after the latency."""
        at = self._loop.time() + self._delay_s
        self._items.append((at, item))
        if len(self._items) == 1:
            self._loop.call_at(at, self._arrived)

    def _arrived(self) -> None:
        now = self._loop.time() + _EARLY_S
        while self._items and self._items[0][0] <= now:
            self._arrive(self._items[0][1])  # an item that is sent meanwhile must not start a second timer
            self._items.popleft()
        if self._items:
            self._loop.call_at(self._items[0][0], self._arrived)


class _Wire:
    """The server's end of the connection."""

    is_gone = False

    def __init__(self, put: Callable[[Any], None]) -> None:
        self._put = put

    def accepted(self) -> None:
        """Do nothing: there are no headers."""

    def ask(self) -> None:
        """Do nothing: reading is never paused."""

    def write(self, frame: Any) -> bool:
        """Send one frame to the device; returns True, since there is always room."""
        self._put(frame)
        return True

    async def room(self) -> None:
        """Return at once: there is always room."""


_GONE: Final = object()
