"""`Crowd`: all devices of one population, which check in repeatedly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from invoker.protocols.federated.client.messages import Attempt, NewSecAgg
from invoker.protocols.federated.verbs.simulation.chances import Chances
from invoker.protocols.federated.verbs.simulation.device import Conversation
from invoker.protocols.federated.verbs.simulation.results import Results
from invoker.protocols.federated.verbs.simulation.simulated_server import House
from invoker.protocols.federated.verbs.simulation.work import Work

_PATIENCE = 5
"""How many times all devices check in without success before the simulation ends."""


class Crowd:
    """The devices of a population.

    Args:
        house: The simulated server.
        population: The name of the population.
        work: Runs the plans of the devices.
        results: Collects the results.
        devices: How many devices there are.
        chances: The random choices; the interval of checkins is ``every_s``, unless a retry window is later.
        stalled: Called when no round can take place.

    Attributes:
        is_closing: Whether no device checks in any more.
    """

    def __init__(
        self,
        house: House,
        population: str,
        work: Work,
        results: Results,
        *,
        devices: int,
        chances: Chances,
        stalled: Callable[[], None],
    ) -> None:
        self.house, self.population, self.work, self.chances = house, population, work, chances
        self.new_secagg = _secagg(house, population)
        self.is_closing = False
        self._results, self._devices = results, devices
        self._stalled = stalled
        self._loop = asyncio.get_running_loop()
        self._tokens: dict[int, str] = {}
        self._times = [0] * devices
        self._in_vain = 0

    def start(self) -> None:
        """Start the checkins of all devices, each at a random time."""
        for number in range(self._devices):
            self._loop.call_later(self._dice(number).uniform(0.0, self.chances.every_s), self._come, number)

    def _come(self, number: int) -> None:
        if not self.is_closing:
            self._times[number] += 1
            Conversation(self, number, self._tokens.get(number, ""), self._dice(number)).start()

    def _dice(self, number: int) -> Random:
        """The random generator for one conversation, which is independent of all others."""
        return Random(f"{self.chances.seed}/{self.population}/{number}/{self._times[number]}")  # noqa: S311 - the choices are not secret

    # Methods for conversations.

    def accepted(self, one: Conversation) -> None:
        """Count a device that was accepted for a round."""
        self._in_vain = 0
        self._results.accepted(one)

    def left(self, one: Conversation) -> None:
        """Count a device that left before its conversation ended."""
        self._results.left(one)

    def ended(self, one: Conversation, attempt: Attempt, *, has_left: bool) -> None:
        """Count a conversation that has ended, and set the time of the device's next checkin."""
        self._results.ended(one, attempt, has_left=has_left)
        if not self.house.coordinator.is_busy:
            self._in_vain += 1
            if self._in_vain > _PATIENCE * self._devices:
                self._stalled()
        if self.is_closing:
            return
        self._tokens[one.number] = attempt.retry.token
        now = self._loop.time()
        pause_s = self.chances.every_s * one.dice.uniform(0.5, 1.5)
        self._loop.call_at(max(attempt.retry.at, now + pause_s), self._come, one.number)


def _secagg(house: House, population: str) -> NewSecAgg | None:
    """The class of the device's side of secure aggregation, if a task of the population needs it."""
    if all(task.secagg is None for task in house.tasks(population)):
        return None
    from invoker.protocols.federated.client.secagg import SecAggClient

    return SecAggClient
