"""Evergreen sessions with their real reactor and runners, on a loop whose time is virtual: one seed is one session."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from urllib.parse import unquote

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.steps import Close
from invoker.errors import InternalError, InvocationError
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.loop.sessions import SessionReactor
from invoker.message import Headers
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.evergreen.table import Table
from tests.simulate.session_bodies import FUNCTIONS, pause, seeded
from tests.simulate.session_peer import Received
from tests.simulate.session_plan import Ending, draw_session
from tests.simulate.verdict import Violation
from tests.simulate.virtual import VirtualLoop

_REGISTRY = builtin()
_PATIENCE_S = 10_000


def simulate_session(seed: int, *, say: Callable[[str], None] | None = None) -> str:
    """Run one seed to its end.

    Args:
        seed: Decides everything.
        say: Is told what happens.

    Returns:
        The name of its status.

    Raises:
        Violation: An invariant does not hold; the text names the seed and what happened last.
    """
    world = _World(seed, say)
    loop = VirtualLoop()
    try:
        with _errors(world), asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(world.run())
            world.expect(not loop.troubles, f"the loop was told: {loop.troubles}")
    except Violation as error:
        raise Violation(world.report(str(error))) from None
    except Exception as error:
        raise Violation(world.report(f"{type(error).__name__}: {error}")) from error
    return world.status


class _World:
    """One session on a wire in memory."""

    def __init__(self, seed: int, say: Callable[[str], None] | None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.plan = draw_session(self.random)
        self.received = Received()
        self.is_gone = False
        self.headers: tuple[tuple[str, str], ...] = ()
        self.outbox: deque[bytes] = deque()
        self.endings: list[InvocationError | None] = []
        self.ended: list[Invocation] = []
        self.opened = 0
        self.trace: deque[str] = deque(maxlen=60)
        self._say = say
        self._room = asyncio.Event()

    @property
    def status(self) -> str:
        """How the session ended."""
        error = self.endings[0]
        return "OK" if error is None else error.status.name

    def expect(self, fact: bool, text: str) -> None:
        """Fail the run unless something holds."""
        if not fact:
            raise Violation(text)

    def note(self, text: str) -> None:
        """Keep a line for the report."""
        self.trace.append(text)
        if self._say is not None:
            self._say(text)

    def report(self, text: str) -> str:
        """What is wrong, with the seed and what happened last."""
        lines = "\n".join(f"  {line}" for line in self.trace)
        return f"session seed {self.seed}: {text}\n{self.plan.settings}\n{self.plan.ending}\nlast:\n{lines}"

    # The wire.

    def accepted(self) -> None:
        """Headers are of no interest."""

    def ask(self) -> None:
        raise Violation("a session never pauses")

    def write(self, frame: bytes) -> bool:
        self.expect(not self.endings, "a frame behind the status")
        self.note(f"sends {frame!r}")
        self.outbox.append(frame)
        self.received.take(frame)
        return len(self.outbox) < self.plan.room

    async def room(self) -> None:
        while len(self.outbox) >= self.plan.room and not self.is_gone:
            self._room.clear()
            await self._room.wait()

    def _closed(self, close: Close) -> None:
        self.note(f"closed with {close.error!r}")
        self.endings.append(close.error)

    async def _fetch(self, uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        data = unquote(uri.removeprefix("http://x/")).encode()
        for byte in data:
            await pause()
            deliver(bytes((byte,)))

    # The run.

    async def run(self) -> None:
        """From the first frame until nothing is left."""
        seeded(self.random)
        engine = Engine(Catalog(FUNCTIONS), _REGISTRY)
        engine.on_close.append(self.ended.append)
        driver = self.driver = Driver(engine, DriverSettings(grace_s=5))
        asked = Headers({"evergreen-extensions": "partial-failures"}) if self.plan.is_partial else Headers({})
        self.session = EvergreenSession(Table([one.spec for one in FUNCTIONS], self.plan.settings), asked)
        self.reactor = SessionReactor(
            self.session, self, driver, self._closed, window=self.plan.settings.window, fetch=self._fetch
        )
        reading = asyncio.create_task(self._read(), name="client reads")
        if self.plan.drains_at is not None:
            asyncio.get_running_loop().call_later(self.plan.drains_at, self._drain)
        try:
            await self._send()
            for _ in range(_PATIENCE_S):
                if self.endings:
                    break
                await asyncio.sleep(1)
            self.expect(bool(self.endings), "the session does not end")
            self.expect(await driver.left(100), "bodies do not leave")
        finally:
            self._gone()
            await driver.left(100)
            reading.cancel()
        self._judge()

    async def _send(self) -> None:
        """What the client does."""
        chance, plan, reactor = self.random, self.plan, self.reactor
        cut = chance.randrange(len(plan.frames) + 1) if plan.ending is Ending.CANCEL else len(plan.frames)
        for frame in plan.frames[:cut]:
            self.note(f"receives {frame!r}")
            reactor.arrived(frame)
            self._check()
            await pause()
            self._check()
        if plan.ending is Ending.HALF_CLOSE:
            self.note("half-close")
            reactor.arrived(None)
            if plan.is_endless:
                await asyncio.sleep(chance.randrange(20))
                self._gone()
        else:
            if plan.ending is Ending.SILENCE and not plan.is_faulty and plan.drains_at is None:
                await self._answered()
            await asyncio.sleep(chance.randrange(20))
            self._gone()
        self._check()

    async def _answered(self) -> None:
        """All is answered although there was no half-close."""
        for _ in range(_PATIENCE_S):
            if all(map(self.received.has_ended, self.plan.outputs)):
                return
            await asyncio.sleep(1)
        raise Violation("outputs do not end although everything was sent")

    def _gone(self) -> None:
        self.note("gone")
        self.is_gone = True
        self._room.set()
        self.reactor.gone()

    def _drain(self) -> None:
        self.note("drain")
        self.driver.engine.is_draining = True
        for drained in list(self.driver.drains):
            drained()

    async def _read(self) -> None:
        """The client takes what was sent, in its own time."""
        while True:
            await pause()
            if self.outbox:
                self.outbox.popleft()
                self._room.set()
            else:
                await asyncio.sleep(1)

    # What must hold.

    def _check(self) -> None:
        session, reactor, window = self.session, self.reactor, self.plan.settings.window
        self.expect(len(self.endings) <= 1, f"it has ended {len(self.endings)} times")
        self.expect({key for key, _ in session.stalled} <= set(reactor.runners), f"stalled: {session.stalled}")
        for runner in reactor.runners.values():
            for stream in runner.invocation.inputs:
                most = window + window // 2
                self.expect(len(stream.queue) <= most, f"{len(stream.queue)} messages wait, the window is {window}")

    def _judge(self) -> None:
        self._check()
        session, driver, plan, received = self.session, self.driver, self.plan, self.received
        left = (session.graph.held, len(session.graph.nodes), session.stalled, session.running, session.waiting)
        self.expect(not any(left), f"the session still has {left}")
        self.expect(not driver.engine.running and not driver.conversations and not driver.drains, "something runs")
        keys = [one.key for one in self.ended]
        self.expect(len(set(keys)) == len(keys), f"an invocation ended twice: {keys}")
        tasks = [one.get_name() for one in asyncio.all_tasks() if one.get_name().startswith(("body", "fetch"))]
        self.expect(not tasks, f"tasks are left: {tasks}")
        error = self.endings[0]
        self.expect(not isinstance(error, InternalError), "an error of ours")
        is_sure = not plan.is_faulty and plan.ending is Ending.HALF_CLOSE and plan.drains_at is None
        self.expect(error is None or not is_sure, f"it should have ended with OK, not {error!r}")
        for node, wanted in plan.outputs.items():
            got = received.flat(node)
            if is_sure:
                self.expect(got == wanted, f"output {node} is {got}, not {wanted}")
            else:
                text = "".join(wanted)
                self.expect(text.startswith("".join(got)), f"output {node} is {got}, not the beginning of {wanted}")
            self.expect(error is not None or received.has_ended(node), f"{node} has not ended")


@contextmanager
def _errors(world: _World) -> Iterator[None]:
    """What is logged as our error is a violation; the rest is not shown."""
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                found.append(logging.Formatter().format(record))

    logger, listener = logging.getLogger("invoker"), Listener()
    was_propagating = logger.propagate
    logger.addHandler(listener)
    logger.propagate = False
    try:
        yield
        world.expect(not found, f"logged: {found}")
    finally:
        logger.removeHandler(listener)
        logger.propagate = was_propagating
