"""The world of the loop: some conversations at once, with the real reactor and runners, where time is virtual."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Any

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Close
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.loop.reactor import Reactor
from invoker.protocols.riff.session import RiffSession
from tests.simulate import verdict
from tests.simulate.bodies import FUNCTIONS
from tests.simulate.peer import Ending, Reads
from tests.simulate.seen import NUMBER, Seen, Witness, clocked, fill, overheard
from tests.simulate.virtual import VirtualLoop

_REGISTRY = builtin()
_EPOCH = 1000.0
_PATIENCE = 10_000


def in_loop(witness: Witness, numbers: list[int]) -> list[Seen]:
    """Run some conversations of a scene at once, to their ends."""
    loop = VirtualLoop()
    world = _World(witness, numbers)
    with (
        clocked(lambda: loop.time() + _EPOCH),
        overheard(world.seen),
        asyncio.Runner(loop_factory=lambda: loop) as runner,
    ):
        runner.run(world.run())
        witness.expect(not loop.troubles, f"the loop was told: {loop.troubles}")
    return world.seen


class _World:
    """The conversations, and the engine that they share."""

    def __init__(self, witness: Witness, numbers: list[int]) -> None:
        self.witness = witness
        self.scene = scene = witness.scene
        self.random = Random(f"loop {scene.seed} {numbers}")
        self.engine = Engine(Catalog(FUNCTIONS), _REGISTRY, limits=scene.limits, max_invocations=scene.slots)
        self.seen = [Seen("loop", number, scene.plans[number]) for number in numbers]

    async def run(self) -> None:
        """From the first frame until nothing is left."""
        scene, witness = self.scene, self.witness
        fill(self.engine, scene)
        witness.watch(self.engine, self.seen)
        driver = Driver(self.engine, DriverSettings(grace_s=5))
        tasks = [asyncio.create_task(_Caller(self, driver, one).live()) for one in self.seen]
        draining = None if scene.drains_at is None else asyncio.create_task(self._drain(driver, scene.drains_at))
        try:
            await asyncio.gather(*tasks)
            witness.expect(await driver.left(100), "bodies do not leave")
            if draining is not None:
                await draining
        finally:
            for task in (*tasks, *([draining] if draining else ())):
                task.cancel()
        verdict.after(witness, driver, self.seen)
        left = [one.get_name() for one in asyncio.all_tasks() if one.get_name().startswith("body")]
        witness.expect(not left, f"tasks are left: {left}")

    async def _drain(self, driver: Driver, at: int) -> None:
        await asyncio.sleep(at)
        self.witness.note("drain")
        await driver.drain(self.scene.cut_after)

    async def pause(self) -> None:
        """Wait for some turns, some time, or not at all."""
        kind = self.random.randrange(8)
        if kind < 4:
            for _ in range(kind):
                await asyncio.sleep(0)
        elif kind == 7:
            await asyncio.sleep(self.random.randrange(1, 5))


class _Caller:
    """One caller, and the wire between it and its reactor."""

    is_gone = False

    def __init__(self, world: _World, driver: Driver, seen: Seen) -> None:
        self.world, self.witness, self.seen, self.plan = world, world.witness, seen, seen.plan
        self._outbox: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._is_asked = True
        self._has_sent = False
        deadline = None if self.plan.deadline is None else asyncio.get_running_loop().time() + self.plan.deadline
        self._session = RiffSession({NUMBER: str(seen.number)}, function=self.plan.case.name)
        self.reactor = Reactor(
            self._session, self, driver, self._closed, deadline=None if deadline is None else deadline + _EPOCH
        )
        if deadline is not None:
            asyncio.get_running_loop().call_at(deadline, self._gone)

    # The wire.

    def accepted(self) -> None:
        """Headers are of no interest."""

    def ask(self) -> None:
        self._check_reading()
        self._is_asked = True
        self._news.set()

    def write(self, frame: bytes) -> bool:
        self.seen.take(frame)
        self._outbox.append(frame)
        self._news.set()
        return len(self._outbox) < self.plan.window

    async def room(self) -> None:
        await self._until(lambda: len(self._outbox) < self.plan.window)

    def _closed(self, close: Close) -> None:
        self.witness.note(f"{self.seen.number} ends with {close.error!r}")
        self.seen.closes.append(close)
        self.witness.expect(len(self.seen.closes) == 1, f"conversation {self.seen.number} closed twice")
        self._news.set()

    async def _until(self, fact: Any) -> None:
        while not fact():
            self._news.clear()
            await self._news.wait()

    # What the caller does.

    async def live(self) -> None:
        """Send, read, and leave."""
        reading = asyncio.create_task(self._read())
        try:
            await self._send()
            async with asyncio.timeout(_PATIENCE):
                await self._until(lambda: self.seen.closes)
        finally:
            reading.cancel()

    async def _send(self) -> None:
        for count, frame in enumerate(self.plan.frames, 1):
            await self.world.pause()
            await self._until(lambda: self._is_asked or self.seen.closes)
            self.witness.note(f"{self.seen.number} sends frame {count} of {len(self.plan.frames)}")
            self._arrives(frame)
        await self.world.pause()
        if self.plan.ending is Ending.HALF_CLOSE:
            await self._until(lambda: self._is_asked or self.seen.closes)
            self.witness.note(f"{self.seen.number} half-closes")
            self._arrives(None)
        elif self.plan.ending is not Ending.SILENCE:
            self._gone()
        self._has_sent = True
        self._news.set()

    def _arrives(self, frame: bytes | None) -> None:
        self._is_asked = self.reactor.arrived(frame)
        verdict.at_each_step(self.witness, self.seen, [one.invocation for one in self.reactor.runners.values()])
        if self._is_asked:
            self._check_reading()

    def _check_reading(self) -> None:
        for runner in self.reactor.runners.values():
            self.witness.expect(*verdict.may_read(runner.invocation, self.world.scene.limits))

    def _gone(self) -> None:
        if not self.seen.closes:
            self.witness.note(f"{self.seen.number} is gone")
            self.seen.is_gone = True
            self.reactor.gone()

    async def _read(self) -> None:
        """Take what was sent, in the caller's own time."""
        if self.plan.reads is Reads.NEVER:
            return
        await self._until(lambda: self._has_sent or self.plan.reads is Reads.ALWAYS)
        while True:
            await self.world.pause()
            await self._until(lambda: self._outbox)
            self._outbox.popleft()
            self._news.set()
