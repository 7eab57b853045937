"""`Rounds`: the populations of one process.

It consists of a coordinator, the leadership of each population, and the interface for devices and metrics.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from typing import Any, Final

import grpc.aio

from invoker.attach.service import Surroundings
from invoker.core.spaces import MemoryStore
from invoker.core.store import ABSENT, Create, Item, Reason, Refused, Space
from invoker.errors import Status, StatusError
from invoker.execution.asker import Asker
from invoker.execution.driver import Driver
from invoker.execution.loop.wire import Wire
from invoker.message import Headers
from invoker.protocols.federated import saved
from invoker.protocols.federated.coordinator import CoordinatorLimits, RoundCoordinator
from invoker.protocols.federated.messages import Blob
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.protocols.federated.saved import Saved
from invoker.protocols.federated.service.backing import RoundBacking
from invoker.protocols.federated.service.counts import RoundCounts
from invoker.protocols.federated.service.devices import DeviceReactor
from invoker.protocols.federated.service.mailbox import MailBox
from invoker.protocols.federated.service.relay import Links
from invoker.protocols.federated.service.relay_listener import RelayListener
from invoker.protocols.federated.service.resources import Resources
from invoker.protocols.federated.service.round_leadership import Leader, RoundLeadership
from invoker.protocols.federated.service.setups import Setups
from invoker.protocols.federated.service.ticker import Ticker
from invoker.protocols.federated.session import DeviceSession
from invoker.protocols.federated.tokens import RetryTokens
from invoker.protocols.federated.wire.names import SERVICE, SESSION
from invoker.settings import parsers as parse
from invoker.telemetry.board import Numbers
from invoker.transports.grpc.methods import LoopMethod
from invoker.transports.grpc.settings import GrpcSettings

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.05
"""The interval in seconds at which a draining process checks whether rounds have ended."""

_KEY_SPACE: Final = "federated-key"
_KEY_TTL_S: Final = 10 * 365 * 24 * 3600.0


class Rounds:
    """The populations that one process serves.

    Args:
        around: What the service finds in its process.
        known: The settings of the service.

    Attributes:
        method: The gRPC method for conversations with devices.
        path: The HTTP path of that method.
        resources: The HTTP handler for downloads.

    Raises:
        StartupError: The file cannot be served.
    """

    def __init__(self, around: Surroundings, known: Any) -> None:
        config = around.config
        host, _ = config.bind_host()
        is_public = not parse.is_loopback(host) and not known.insecure_public
        self._around = around
        self._driver: Driver = around.driver
        self._url: str = known.federated_url
        self._setups = Setups(known.federated, self._driver.engine.catalog, is_public=is_public)
        self._asker = Asker(self._driver.store)
        self._links = Links()
        self.resources = Resources(self._base_url, self._find_missing)
        self._found: dict[tuple[str, str], tuple[int, Blob, Blob]] = {}
        self._key = b""
        self._backing = RoundBacking(self._driver, self.resources, self._wake, self._is_behind)
        limits = CoordinatorLimits(sessions=known.federated_sessions, sessions_per_peer=known.federated_peer_sessions)
        self.coordinator = RoundCoordinator(self._backing, time.monotonic, limits, memory=self._driver.engine.memory)
        tasks = [(name, task.name) for name in self._setups.populations for task in self._tasks(name)]
        self._counts = RoundCounts(self.coordinator, tasks)
        self._ticker = Ticker(self.coordinator, time.monotonic)
        self._settings = DeviceSettings(level=known.level)
        self.method = LoopMethod(SERVICE, SESSION, lambda metadata: metadata, self._begin, knows_peer=True)
        self.path = self.method.path
        self._relay_listener: RelayListener | None = None
        # needed before `start`: a device that comes early waits for a leader, since after NOT_FOUND it would not return
        # for hours
        self._leaderships = {name: RoundLeadership(name, self._driver, self) for name in self._setups.populations}
        self._handing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start to lead the populations, or to follow their leaders.

        Raises:
            LoadError: The function of a new task does not make a first checkpoint (F-137).
        """
        address = token = ""
        if not isinstance(self._driver.store, MemoryStore):
            self._relay_listener = RelayListener(self.method, self._driver, GrpcSettings())
            await self._relay_listener.start()
            address, token = self._relay_listener.address, self._relay_listener.token
        elif self._around.share_port:
            log.warning("each worker runs rounds of its own, because they share no store; give INVOKER_STORE")
        else:
            log.info("rounds are kept in memory and end with this process; give INVOKER_STORE to keep them")
        await self._make_missing()
        self._driver.drains.add(self._drain)
        for one in self._leaderships.values():
            one.start(address, token)

    async def stop(self, grace_s: float) -> None:
        """End the remaining rounds, and let another process lead."""
        self._driver.drains.discard(self._drain)
        self._drain()
        try:
            async with asyncio.timeout(grace_s):
                while self.coordinator.is_busy:  # noqa: ASYNC110 - there is no event for the end of a commit
                    await asyncio.sleep(0.01)
        except TimeoutError:
            log.warning("a round was cut by the end of the process")
        if self._handing is not None:
            self._handing.cancel()
            await asyncio.wait((self._handing,), timeout=_LOOK_S)
        for one in self._leaderships.values():
            await one.stop()
        self.coordinator.stop()
        self._ticker.stop()
        self._backing.close()
        self._asker.leave()
        await self._links.close()
        if self._relay_listener is not None:
            await self._relay_listener.stop(grace_s)

    def numbers(self) -> Numbers:
        """The counts of the rounds."""
        return self._counts.numbers()

    def _drain(self) -> None:
        """Accept no more devices; give up the leadership of each population as soon as its rounds have ended."""
        self.coordinator.drain()
        if self._handing is None:
            self._handing = asyncio.get_running_loop().create_task(self._hand_over(), name="hand over rounds")

    async def _hand_over(self) -> None:
        left = dict(self._leaderships)
        while left:
            busy = {one.population for one in self.coordinator.status() if one.phase_id}
            for name in left.keys() - busy:
                await left.pop(name).stop()
            await asyncio.sleep(_LOOK_S)

    # Methods for conversations.

    def leadership(self, population: str) -> RoundLeadership | None:
        """The leadership of a population."""
        return self._leaderships.get(population)

    def channel(self, leader: Leader) -> grpc.aio.Channel:
        """The channel to a leader in another process."""
        return self._links.channel(leader)

    def _begin(self, metadata: Headers, wire: Wire, driver: Driver, on_close: Any, **given: Any) -> DeviceReactor:
        session = DeviceSession(self.coordinator, MailBox(), metadata, self._settings, pack=self._backing.pack)
        return DeviceReactor(session, wire, driver, on_close, place=self, metadata=metadata, **given)

    def _wake(self, at: float) -> None:
        self._ticker.wake(at)

    # Methods for leaderships.

    async def lead(self, population: str) -> None:
        """Open a population, at the last committed round of each task (F-083)."""
        await self._unlock()
        while self._around.http_address() == "":  # noqa: ASYNC110 - the HTTP port opens soon
            await asyncio.sleep(_LOOK_S / 10)
        states = {one.name: await self._state(population, one.name) for one in self._tasks(population)}
        self._backing.remember(population, states)
        self.coordinator.open(
            self._setups.setup(population, states, self.resources.publish, RetryTokens(self._key, time.time))
        )
        for task, state in states.items():
            log.info(
                "the next round starts from the last committed one",
                extra={"population": population, "task": task, "round": state.round},
            )

    def lose(self, population: str) -> None:
        """End the conversations of a population."""
        if any(one.population == population for one in self.coordinator.status()):
            self.coordinator.close(
                population, StatusError(Status.UNAVAILABLE, "another process runs the rounds now; try again")
            )

    def _is_behind(self, population: str) -> None:
        """Handle a commit that was refused or not answered: give up the leadership."""
        self._leaderships[population].give_up()

    def _tasks(self, population: str) -> Any:
        return self._setups.populations[population].tasks

    async def _unlock(self) -> None:
        """Get the key that all processes of one store share."""
        if not self._key:
            space = await self._asker.ask(Create(_KEY_SPACE, _KEY_TTL_S, secrets.token_bytes(32)))
            if not isinstance(space, Space):
                raise StatusError(Status.UNAVAILABLE, f"the store gives no key: {space.reason.value}")
            self._key = space.about
            self.resources.unlock(self._key)

    async def _make_missing(self) -> None:
        """Make the first checkpoints that the store lacks; if one cannot be made, the start fails."""
        for population in self._setups.populations:
            for task in self._tasks(population):
                item = await self._asker.ask(saved.lookup(population, task.name))
                if item is None or (isinstance(item, Refused) and item.reason is Reason.UNKNOWN):
                    self._setups.initial(population, task.name)

    async def _state(self, population: str, task: str) -> Saved:
        """Get a task's state from the store, and ensure that no earlier leader can change it.

        If there is no state, the first checkpoint is written. Otherwise the stored checkpoint is written again, which
        gives it a new version. A former leader whose lease has ended does not know this version, so its commit is
        refused.
        """
        await self._asker.ask(saved.create(population, task))
        item = await self._asker.ask(saved.lookup(population, task))
        if item is None:
            first = Saved(-1, b"", ABSENT)
            item = await self._asker.ask(
                saved.commit(population, task, first, self._setups.initial(population, task), "")
            )
        elif isinstance(item, Item):
            item = await self._asker.ask(saved.rewrite(population, task, item))
        if not isinstance(item, Item):
            raise StatusError(Status.UNAVAILABLE, f"the store does not keep the task {task!r}: {item.reason.value}")
        return saved.saved_of(item)

    # Downloads.

    def _base_url(self) -> str:
        """The base URL by which devices reach the HTTP transport; empty: there is none."""
        _, _, port = (self._around.http_address() or "").rpartition(":")
        if not port:
            return ""
        scheme = "https" if self._around.tls is not None else "http"
        return self._url or f"{scheme}://localhost:{port}"

    async def _find_missing(self) -> None:
        """Publish the plans and the stored checkpoints of populations that other processes lead."""
        await self._unlock()
        for population, one in self._leaderships.items():
            if one.is_here:
                continue
            for task in self._tasks(population):
                item = await self._asker.ask(saved.lookup(population, task.name))
                known = self._found.get((population, task.name))
                if isinstance(item, Item) and (known is None or known[0] != item.updated_ns):
                    plan = self.resources.publish(self._setups.plan(population, task.name))
                    self._found[population, task.name] = (item.updated_ns, plan, self.resources.publish(item.value))
