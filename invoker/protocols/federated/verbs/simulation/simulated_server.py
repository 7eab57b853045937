"""`House`: the server of ``invoker rounds.toml`` for simulations, without sockets, threads and real time."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from invoker.author.prepare import Prepared
from invoker.codecs import builtin, wants_arrays
from invoker.core.budget import Limits
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.steps import Close
from invoker.errors import ConfigError
from invoker.execution.asker import Asker
from invoker.execution.driver import Driver
from invoker.execution.loop.wire import Wire
from invoker.execution.nested.scope import CatalogScope
from invoker.execution.placement import Placement, placement_of
from invoker.message import Headers
from invoker.protocols.federated import saved
from invoker.protocols.federated.backing import Commit, PopulationSetup
from invoker.protocols.federated.config import TaskConfig
from invoker.protocols.federated.coordinator import CoordinatorLimits, RoundCoordinator
from invoker.protocols.federated.saved import Saved
from invoker.protocols.federated.service.backing import RoundBacking
from invoker.protocols.federated.service.devices import DeviceReactor
from invoker.protocols.federated.service.mailbox import MailBox
from invoker.protocols.federated.service.resources import Resources
from invoker.protocols.federated.service.setups import Setups, with_aggregators
from invoker.protocols.federated.service.ticker import Ticker
from invoker.protocols.federated.session import DeviceSession
from invoker.protocols.federated.tokens import RetryTokens
from invoker.protocols.federated.verbs.simulation.clock import SimulatedLoop
from invoker.protocols.federated.wire.names import API_KEY, POPULATION_KEY
from invoker.settings import Config

log = logging.getLogger(__name__)

_LARGEST: Final = 1 << 40


class House:
    """The coordinator, the driver and the store of one simulation.

    Args:
        path: The file of rounds.
        populations: The names of the populations to simulate; empty: all.
        rounds: The number of rounds of each task; 0: the number in the file, or ten if the file sets no limit.
        seed: The seed for the choice of tasks, and for tokens.

    Attributes:
        setups: The simulated populations by name, after `open`.
        backing: The backing, with the committed checkpoints.
        coordinator: The coordinator, which serves the populations after `open`.

    Raises:
        StartupError: The file is invalid, or names a function or file that cannot be used.
    """

    coordinator: RoundCoordinator
    backing: SimulatedBacking

    def __init__(self, path: str, *, populations: Sequence[str], rounds: int, seed: int) -> None:
        self._found: tuple[Prepared, ...] = with_aggregators(path, (), Config())
        functions = [one.function for one in self._found]
        catalog = Catalog(functions)
        self._setups = Setups(path, catalog, is_public=False)
        self.names = tuple(populations) or tuple(self._setups.populations)
        for name in self.names:
            if name not in self._setups.populations:
                known = ", ".join(self._setups.populations)
                raise ConfigError(f"{path} has no population {name!r}; it has {known}")
        self.setups: dict[str, PopulationSetup] = {}
        self._rounds, self._seed = rounds, seed
        arrays = any(wants_arrays(one.spec.types) for one in functions)
        limits = Limits(hard_bytes=_LARGEST)
        engine = Engine(catalog, builtin(arrays=arrays), limits=limits, memory_bytes=_LARGEST, new_lock=threading.Lock)
        self.driver = Driver(engine)
        self._place = _Alone()

    def tasks(self, population: str) -> Sequence[TaskConfig]:
        """The tasks of a population in the file, with the number of rounds replaced."""
        return [replace(one, rounds=self._rounds or one.rounds or 10) for one in self._known(population)]

    def _known(self, population: str) -> Sequence[TaskConfig]:
        return self._setups.populations[population].tasks

    async def open(self, loop: SimulatedLoop, devices: int) -> None:
        """Start the functions, and open the populations, each for ``devices`` devices."""
        self._loop = loop
        self.driver.loop = loop
        self.driver.engine.scope = CatalogScope(self.driver)
        loop.is_computing = self._is_computing
        for one in self._found:
            await one.function.start()
        self._asker = Asker(self.driver.store)
        resources = Resources(str, _no_miss)  # without a base URL there are no downloads, so offers contain the bytes
        self.backing = SimulatedBacking(self.driver, resources, self._wake, lambda _: None, seed=self._seed)
        limits = CoordinatorLimits(sessions=devices * len(self.names), sessions_per_peer=devices)
        self.coordinator = RoundCoordinator(self.backing, loop.time, limits)
        self._ticker = Ticker(self.coordinator, loop.time)
        tokens = RetryTokens(hashlib.sha256(str(self._seed).encode()).digest(), loop.time)
        for name in self.names:
            states = {task.name: await self._state(name, task.name) for task in self.tasks(name)}
            self.backing.remember(name, states)
            made = self._setups.setup(name, states, resources.publish, tokens)
            tasks = tuple(
                replace(one, config=replace(one.config, rounds=task.rounds))
                for one, task in zip(made.tasks, self.tasks(name), strict=True)
            )
            config = replace(made.config, seed=self._seed)
            self.setups[name] = replace(made, config=config, tasks=tasks, attest=None)
            self.coordinator.open(self.setups[name])

    async def _state(self, population: str, task: str) -> Saved:
        await self._asker.ask(saved.create(population, task))
        first = Saved(-1, b"")
        item = await self._asker.ask(saved.commit(population, task, first, self._setups.initial(population, task), ""))
        return saved.saved_of(item)

    async def close(self) -> None:
        """End the remaining conversations, and stop the functions."""
        self.coordinator.stop()
        self._ticker.stop()
        self.backing.close()
        self._asker.leave()
        await asyncio.sleep(0)
        await self.driver.left(self.driver.settings.grace_s)
        await self.driver.children.stop()
        self.driver.threads.close()
        for one in self._found:
            await one.function.stop()

    def connect(self, population: str, wire: Wire, on_close: Callable[[Close], None]) -> DeviceReactor:
        """Start the server's side of one conversation."""
        key = self.setups[population].api_key
        metadata = Headers({POPULATION_KEY: population} | ({API_KEY: key} if key else {}))
        session = DeviceSession(self.coordinator, MailBox(), metadata, pack=self.backing.pack)
        return DeviceReactor(session, wire, self.driver, on_close, place=self._place, metadata=metadata)

    def _wake(self, at: float) -> None:
        self._ticker.wake(at)

    def _is_computing(self) -> bool:
        """Whether a function computes in a thread or a process, that is, runs without waiting for input."""
        return any(isinstance(one, Invocation) and _computes(one) for one in self.driver.leaving.values())


class SimulatedBacking(RoundBacking):
    """The backing of a simulated coordinator; jobs run on the event loop, so they end in the order of their start.

    Args:
        seed: The seed for the ids of rounds.

    Attributes:
        committed: The last checkpoint of each task, by population and task.
    """

    def __init__(
        self,
        driver: Driver,
        resources: Resources,
        wake: Callable[[float], None],
        is_behind: Callable[[str], None],
        *,
        seed: int,
    ) -> None:
        super().__init__(driver, resources, wake, is_behind)
        self.committed: dict[tuple[str, str], bytes] = {}
        self._ids = Random(f"{seed}/ids")  # noqa: S311 - the ids of a simulation need not be unguessable

    def new_id(self) -> str:
        """Make an id from the seed, since the sizes of frames depend on how well ids compress."""
        return base64.urlsafe_b64encode(self._ids.randbytes(18)).decode()

    def commit(self, commit: Commit, done: Callable[[bool], None]) -> None:
        """Store a checkpoint, and keep it for the metric."""
        self.committed[commit.population, commit.task] = commit.checkpoint
        super().commit(commit, done)

    def compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run a job now, and call ``then`` with its result in a later turn of the loop."""
        asyncio.get_running_loop().call_soon(then, _caught(job))

    async def pack(self, key: Hashable, job: Callable[[], Any]) -> Any:  # noqa: ARG002 - the interface of `RoundBacking`
        """Compress or inflate a message now."""
        return job()


class _Alone:
    """The rounds of a process without other processes, so that no conversation is relayed."""

    path = ""

    def leadership(self, population: str) -> None:  # noqa: ARG002 - the interface of `Place`
        return None

    def channel(self, leader: object) -> Any:
        raise AssertionError(f"there is no other process, so none is at {leader}")


async def _no_miss() -> None:
    """Return at once, since no other process publishes resources."""


def _computes(invocation: Invocation) -> bool:
    if placement_of(invocation.function.spec) is Placement.LOOP:
        return False
    return not any(one.waiters and not one.queue and not one.is_ended for one in invocation.inputs)


def _caught(job: Callable[[], Any]) -> Any:
    try:
        return job()
    except Exception as error:  # noqa: BLE001 - the exception is passed to the caller
        return error
