"""`Driver`: the state that all conversations of one loop share, and the work that must end before the process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from invoker.author.lift import Function
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.limits import TimeLimit
from invoker.core.spaces import MemoryStore
from invoker.core.steps import Open
from invoker.core.store import Store
from invoker.errors import InvocationError, ShuttingDown, Status
from invoker.execution.alarm import Alarm, Limited
from invoker.execution.bodies.loop import LoopRunner
from invoker.execution.bodies.pool import Threads
from invoker.execution.bodies.process import ProcessRunner
from invoker.execution.bodies.runner import Body, Host, Runner, Spawn
from invoker.execution.bodies.thread import ThreadRunner
from invoker.execution.isolation.pool import Children, ChildrenSettings
from invoker.execution.pace.gate import Pace
from invoker.execution.pace.slices import Slices
from invoker.execution.pace.sweeper import Sweeper
from invoker.execution.pace.tasks import OwnTask
from invoker.execution.placement import Placement, placement_of

log = logging.getLogger(__name__)

_MOST_WAITING = 256
"""How many conversations may wait before they send a refusal. A direct conversation keeps its thread meanwhile, but no
slot."""

_MOST_BEGINNING = 64
"""How many async bodies may begin in one turn of the loop, if the transport does not begin them itself."""


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """The settings of a driver.

    Attributes:
        threads: Sync bodies that may run at once.
        grace_s: How long user code may take to return after its invocation ended.
        lingering_s: An invocation that outlives the end of its inputs by this is logged (R-134).
        debug: Whether peers may see tracebacks.
        depth: How many functions may have called each other, one within another.
        children: How many child processes there are for isolated functions.
    """

    threads: int = 256
    grace_s: float = 5.0
    lingering_s: float = 60.0
    debug: bool = False
    depth: int = 16
    children: ChildrenSettings = field(default_factory=ChildrenSettings)


@dataclass(slots=True)
class SessionCounts:
    """Counts sessions of many invocations: how many run, and how the others have ended."""

    running: int = 0
    ended: dict[Status, int] = field(default_factory=dict)


class Cuttable(Protocol):
    """A conversation that a drain waits for, and cuts at its time limit."""

    def fail(self, error: InvocationError) -> None:
        """End the conversation with an error; called on the loop."""


class Direct(Cuttable, Protocol):
    """A conversation in a thread of its own; see `invoker.execution.thread.direct` and `invoker.execution.whole`."""

    @property
    def invocation(self) -> Invocation | None:
        """The invocation that it runs; None before the first one."""


class Driver:
    """Runs the conversations of one event loop over one engine.

    Args:
        engine: The engine that admits invocations.
        settings: The settings of the driver.
        store: The store that all conversations share; None: a new one in memory.

    Attributes:
        alarm: Ends the invocations of the loop that reach their time limit.
        spawn: Starts the task of an async body; a transport may set one that starts it earlier.
        slices: Lets only a few bodies continue in one turn of the loop.
        waiting: Conversations that wait before they send a refusal (R-170).
        shared: Invocations that several conversations may hold, by key; see `invoker.execution.loop.shared`.
        drains: Called when the drain begins; conversations that could last for ever without work register here.
    """

    def __init__(self, engine: Engine, settings: DriverSettings | None = None, *, store: Store | None = None) -> None:
        self.engine = engine
        self.store: Store = store or MemoryStore()
        self.settings = settings or DriverSettings()
        self.threads = Threads(self.settings.threads)
        self.children = Children(tuple(engine.catalog), self.settings.children)
        self.sweeper = Sweeper()
        self.sessions = SessionCounts()
        self._paces: dict[str, Pace] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.conversations: set[Cuttable] = set()
        self.direct: set[Direct] = set()
        self.shared: dict[str, Any] = {}
        self.alarm = Alarm(_end_late)
        self.leaving: dict[object, str | Invocation] = {}
        self.spawn: Spawn = self._spawn
        self.slices = Slices()
        self._beginning = Slices(_MOST_BEGINNING)
        self._has_left: asyncio.Event | None = None
        self._lingering: dict[Cuttable, tuple[float, Callable[[], None]]] = {}  # oldest first
        self._looking: asyncio.TimerHandle | None = None
        self._cut_by: ShuttingDown | None = None
        self.waiting: set[object] = set()
        self.drains: set[Callable[[], None]] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def is_direct(self) -> bool:
        """Whether a transport that can give each call a thread of its own should do so."""
        specs = [one.spec for one in self.engine.catalog]
        return all(placement_of(one, specs) is Placement.CALL for one in specs)

    @property
    def may_lead(self) -> bool:
        """Whether a transport may serve some functions in the thread that reads their requests."""
        return any(placement_of(one.spec) is Placement.CALL for one in self.engine.catalog)

    def runner(self, invocation: Invocation, host: Host) -> Runner:
        """Make the runner of an invocation for a conversation on the loop, and watch the invocation's time limit."""
        runner = self._make_runner(invocation, host)
        if invocation.limit is not None:
            self.alarm.add(runner, invocation.limit)
        return runner

    def _make_runner(self, invocation: Invocation, host: Host) -> Runner:
        settings, placement = self.settings, placement_of(invocation.function.spec)
        if placement is Placement.PROCESS:
            return ProcessRunner(
                invocation, host, children=self.children, grace_s=settings.grace_s, on_left=self.forget
            )
        if placement is Placement.LOOP:
            return LoopRunner(
                invocation, host,
                threads=self.threads, grace_s=settings.grace_s, spawn=self.spawn, on_left=self.forget,
                debug=settings.debug,
            )  # fmt: skip
        return ThreadRunner(
            invocation, host,
            threads=self.threads, grace_s=settings.grace_s, on_left=self.forget, debug=settings.debug,
            memory=self.engine.memory,
        )  # fmt: skip

    def _spawn(self, body: Body) -> None:
        if (others := self._beginning.wait()) is None:
            _begin(body)
        else:
            others.add_done_callback(lambda _: _begin(body))

    def may_wait(self, conversation: object) -> bool:
        """Whether a conversation may wait before it sends a refusal; False when too many wait already (R-170)."""
        if len(self.waiting) >= _MOST_WAITING:
            return False
        self.waiting.add(conversation)
        return True

    def pace(self, function: Function) -> Pace:
        """The record of how long a sync function keeps its thread busy."""
        name = function.spec.name
        return self._paces.get(name) or self._paces.setdefault(name, Pace())

    def entered(self, conversation: Cuttable) -> None:
        """Remember a conversation, which begins now, until `exited`."""
        self.conversations.add(conversation)

    def exited(self, conversation: Cuttable) -> None:
        """Forget a conversation that is over."""
        self.conversations.discard(conversation)
        if conversation in self._lingering:
            del self._lingering[conversation]
        if self.engine.is_draining:
            self._look_quiet()

    def entered_direct(self, conversation: Direct) -> None:
        """Note that a conversation begins in a thread of its own; called in that thread."""
        self.direct.add(conversation)

    def exited_direct(self, conversation: Direct) -> None:
        """Forget a conversation whose thread is free again; called in that thread."""
        self.direct.discard(conversation)
        if not self._quiet.is_set() and self.loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has closed, so nothing waits for this conversation
                self.loop.call_soon_threadsafe(self._look_quiet)

    def _look_quiet(self) -> None:
        if not self.conversations and not self.direct:
            self._quiet.set()

    def start(self, runner: Runner) -> None:
        """Run a body; it is remembered until its user code returns, even if its conversation ends before."""
        self.leaving[runner] = runner.invocation
        try:
            runner.start()
        except InvocationError:
            self.forget(runner)
            raise

    def refused(self, step: Open, error: InvocationError) -> None:
        """Log an invocation that was not admitted, and apply the policy of errors to its error."""
        self.engine.policy.apply(error, step.protocol)
        told = {"protocol": step.protocol, "function": step.function, "status": error.status.name, "detail": str(error)}
        log.info("invocation refused", extra=told)

    def ended(self, runner: Runner) -> None:
        """Count a finished invocation, and make its body end unless it has never started."""
        self.engine.close(runner.invocation)
        if runner.invocation.limit is not None:
            self.alarm.drop(runner)
        if runner in self.leaving:
            runner.stop()
        elif runner.invocation.has_place:
            self.engine.left(runner.invocation)

    def watch(self, future: asyncio.Future[None], name: str) -> None:
        """Let the end of the process wait for a future that ends by itself."""
        self.leaving[future] = name
        future.add_done_callback(self.forget)

    def forget(self, left: object) -> None:
        """Forget a body whose user code has returned, or a future that is done."""
        gone = self.leaving.pop(left, None)
        if isinstance(gone, Invocation) and gone.has_place:
            self.engine.left(gone)
        if self._has_left is not None and not self.leaving:
            self._has_left.set()

    def linger(self, conversation: Cuttable, tell: Callable[[], None]) -> None:
        """Call ``tell`` if the conversation still runs ``lingering_s`` from now; its inputs have just ended (R-134)."""
        loop = asyncio.get_running_loop()
        self._lingering[conversation] = (loop.time(), tell)
        if self._looking is None:
            self._looking = loop.call_later(self.settings.lingering_s, self._look)

    def _look(self) -> None:
        """Call back the conversations whose time has passed, and look again when the next time has passed."""
        loop, lingering = asyncio.get_running_loop(), self._lingering
        self._looking = None
        while lingering:
            conversation, (ended_at, tell) = next(iter(lingering.items()))
            due = ended_at + self.settings.lingering_s
            if due > loop.time():
                self._looking = loop.call_at(due, self._look)
                return
            del lingering[conversation]
            tell()

    @property
    def left_behind(self) -> list[str]:
        """Bodies that are still in user code: their functions and invocations."""
        direct = [one.invocation for one in self.direct]
        named = [one if isinstance(one, str) else _named(one) for one in self.leaving.values()]
        return [*named, *(_named(one) for one in direct if one is not None)]

    def zombies(self) -> Iterator[str]:
        """The names of functions that still run after their invocations ended, once per invocation; on the loop."""
        running = [*self.leaving.values(), *(one.invocation for one in tuple(self.direct))]
        for one in running:
            if isinstance(one, Invocation) and one.is_finished:
                yield one.function.spec.name

    async def drain(self, timeout_s: float) -> bool:
        """Take no new invocations, let the running ones end, cut those that remain; True when nothing had to be cut.

        Args:
            timeout_s: Seconds until running conversations are cut with `ShuttingDown` (R-025).
        """
        self.loop = asyncio.get_running_loop()
        self.engine.is_draining = True
        for drained in list(self.drains):
            drained()
        if self.direct or self.conversations:
            self._quiet.clear()
        self._look_quiet()
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            cut: list[Cuttable] = [*self.conversations, *self.direct]
            many = "conversation is" if len(cut) == 1 else "conversations are"
            log.warning("the drain took longer than %s s; %s %s cut", timeout_s, len(cut), many)
            self._cut_by = ShuttingDown(f"the invocation was cut, because it did not end within {timeout_s:g} s")
            for conversation in cut:
                conversation.fail(self._cut_by)
            return False
        return True

    async def left(self, timeout_s: float) -> bool:
        """Wait for bodies whose user code has not yet returned; False when some did not within ``timeout_s``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.leaving:
                    if self._has_left is None or self._has_left.is_set():
                        self._has_left = asyncio.Event()
                    await self._has_left.wait()
                if self.direct:
                    self._quiet.clear()
                    self._look_quiet()
                    await self._quiet.wait()
        self.end_rest()
        return not self.leaving and not self.direct

    def end_rest(self) -> None:
        """End the invocations whose threads do not return before the process ends, so that they are logged."""
        for invocation in list(self.engine.running.values()):
            if invocation.finish(self._cut_by or ShuttingDown("the process ended before the invocation did")):
                self.engine.close(invocation)

    def close(self) -> None:
        """Close the store, and let idle threads end."""
        if self._looking is not None:
            self._looking.cancel()
        self.threads.close()
        self.sweeper.close()
        self.store.close()


def _begin(body: Body) -> None:
    body.task = task = asyncio.get_running_loop().create_task(body.run(), name=body.name)
    if isinstance(task, OwnTask):
        task.owner = body.invocation.context


def _named(invocation: Invocation) -> str:
    return f"'{invocation.function.spec.name}' (invocation {invocation.id})"


def _end_late(runner: Limited, limit: TimeLimit) -> None:
    runner.host.finished(runner.invocation, limit.error)
