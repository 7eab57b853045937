"""`Scene`: runs one simulation, with its server, its devices and its results."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from invoker.errors.wording import describe
from invoker.protocols.federated.tally import RoundRecord
from invoker.protocols.federated.verbs.simulation.chances import Chances
from invoker.protocols.federated.verbs.simulation.clock import SimulatedLoop
from invoker.protocols.federated.verbs.simulation.crowd import Crowd
from invoker.protocols.federated.verbs.simulation.results import Result, Results
from invoker.protocols.federated.verbs.simulation.show import Bar
from invoker.protocols.federated.verbs.simulation.simulated_server import House
from invoker.protocols.federated.verbs.simulation.work import Work, WorkOptions

_UNHEARD_S: Final = 30.0
"""A round is reported this many simulated seconds after its end if some devices left before they knew of the end."""

_MOST_EVERY_S: Final = 60.0


class SceneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a simulation.

    Attributes:
        work: The options for the data that devices send.
        chances: The parameters of the random choices.
        metric: Called with the checkpoint of each committed round; None: there is no metric.
    """

    work: WorkOptions
    chances: Chances
    metric: Callable[[Any], Any] | None = None


class Scene:
    """One simulation.

    Args:
        house: The simulated server, which is not open yet.
        options: The other options.
        told: Called with the result of each round.
        note: Called with each warning for the user.
        bar: The progress bar.

    Attributes:
        why: Why the simulation ended: ``done``, ``interrupted``, or a sentence.
    """

    def __init__(
        self,
        house: House,
        options: SceneOptions,
        *,
        told: Callable[[Result], None],
        note: Callable[[str], None],
        bar: Bar,
    ) -> None:
        self.why = "done"
        self._house, self._options, self._told, self._note, self._bar = house, options, told, note, bar
        self._wanted = {(name, task.name): task.rounds for name in house.names for task in house.tasks(name)}
        self._has_failed = False

    async def run(self) -> Results:
        """Simulate until all rounds have ended, or until an interrupt."""
        loop, options = asyncio.get_running_loop(), self._options
        assert isinstance(loop, SimulatedLoop)
        self._done = asyncio.Event()
        await self._house.open(loop, options.work.devices)
        tally = self._house.coordinator.tally
        results = self._results = Results(loop.time, tally, self._metric, self._told)
        tally.observers.append(self._recorded)
        loop.add_signal_handler(signal.SIGINT, self._stop, "interrupted")
        self._crowds = [self._crowd(name) for name in self._house.names]
        for crowd in self._crowds:
            crowd.start()
        ticking = loop.create_task(self._tick(), name="bar")
        try:
            await self._done.wait()
        finally:
            ticking.cancel()
            loop.remove_signal_handler(signal.SIGINT)
            results.close_all()
            await self._house.close()
        return results

    def _crowd(self, population: str) -> Crowd:
        options, tasks = self._options, self._house.tasks(population)
        lengths = {
            one.name: {name: length for name, (_, length) in one.secagg.vectors.items()}
            for one in tasks if one.secagg is not None
        }  # fmt: skip
        work = Work(options.work, [one.name for one in tasks], lengths, self._note)
        devices = options.work.devices
        fills_s = min(one.selection_timeout_s * devices / (2 * one.cohort) for one in tasks)
        every_s = options.chances.every_s or min(_MOST_EVERY_S, fills_s)
        return Crowd(
            self._house, population, work, self._results,
            devices=devices, chances=msgspec.structs.replace(options.chances, every_s=every_s),
            stalled=partial(self._stop, f"no round of {population!r} can take place"),
        )  # fmt: skip

    async def _tick(self) -> None:
        """Update the bar until the simulation ends."""
        while True:
            await asyncio.sleep(1.0)
            self._bar.tick(len(self._results.rounds), self._results.totals)

    # Rounds.

    def _recorded(self, record: RoundRecord) -> None:
        self._results.recorded(record)
        loop = asyncio.get_running_loop()
        loop.call_later(_UNHEARD_S, self._results.close, record.phase_id)
        self._wanted[record.population, record.task] -= 1
        if all(left <= 0 for left in self._wanted.values()):
            for crowd in self._crowds:
                crowd.is_closing = True
            loop.call_later(_UNHEARD_S + 1.0, self._stop, "done")

    def _metric(self, population: str, task: str) -> float | None:
        if self._options.metric is None:
            return None
        from invoker.codecs.checkpoint import read_checkpoint
        from invoker.tensors.checkpoint import Checkpoint

        data = self._house.backing.committed[population, task]
        try:
            return float(self._options.metric(read_checkpoint(data, Checkpoint)))
        except Exception as error:  # noqa: BLE001 - the user's function may raise any exception
            if not self._has_failed:
                self._has_failed = True
                self._note(f"the metric failed: {describe(error)}; further failures of it are only left out")
            return None

    def _stop(self, why: str) -> None:
        if not self._done.is_set():
            self.why = why
            self._done.set()
