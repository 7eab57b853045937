"""`Children`: the warm pool. Each isolated invocation takes a child of its own, and gives it back afterwards.

Idle children are warm: started, with the functions loaded. When a call takes the last idle one, another is started for
the next call. Children that remain after a burst are ended when they have been idle for a while. A child that has
served many invocations, or that reports that it is worn, is not used again.

A child that starts takes a core for about a second, for its imports. So only some children start at once, and calls
that find neither an idle child nor a place to start one wait; a burst of calls must not take the cores from everything
else.

Where children end before they are ready, new ones are started ahead of calls only after a pause, which doubles each
time; a call that finds no idle child starts one in any case, and fails with the reason if that fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from invoker.author.lift import Function
from invoker.errors import HookError, Overloaded, StartupError
from invoker.execution.isolation.child import Child, Tenant
from invoker.execution.isolation.frames import Hello, Loaded

log = logging.getLogger(__name__)

_SERVES: Final = 1000
"""Invocations after which a child is replaced."""

_IDLE_S: Final = 30.0
"""Seconds that a child beyond the warm ones may be idle."""

_PAUSE_S: Final = 0.5
_MOST_PAUSE_S: Final = 30.0
_END_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ChildrenSettings:
    """The settings of the pool of children, and of each child.

    Attributes:
        most: How many invocations may run in children at once.
        warm: How many idle children wait for work.
        starts: How many children may start at once.
        told: The settings that are sent to a child; see `invoker.server.isolated`.
    """

    most: int = 16
    warm: int = 2
    told: tuple[tuple[str, Any], ...] = ()
    starts: int = 2


class Children:
    """The children of one serving process; used on its loop only.

    Args:
        functions: All functions that are served; each child loads those that ask for isolation.
        settings: How many children there may be, and their settings.

    Attributes:
        busy: Children that hold an invocation.
        died: How many children ended although this process had not asked them to.
    """

    def __init__(self, functions: Sequence[Function], settings: ChildrenSettings | None = None) -> None:
        self.settings = settings or ChildrenSettings()
        self.busy: set[Child] = set()
        self.died = 0
        self._functions = [one for one in functions if one.spec.isolation]
        self._idle: list[Child] = []
        self._waiting: deque[Tenant] = deque()
        self._all: set[Child] = set()
        self._hello: Hello | None = None
        self._pause_s = 0.0
        self._warming: asyncio.TimerHandle | None = None
        self._trimming: asyncio.TimerHandle | None = None
        self._first: asyncio.Future[str] | None = None
        self._is_closed = False
        self._janitor = Janitor()

    @property
    def idle(self) -> int:
        """The number of children that wait for work."""
        return len(self._idle)

    @property
    def pids(self) -> list[int]:
        """The process ids of all children that have not ended."""
        return [one.pid for one in self._all]

    @property
    def is_well(self) -> bool | None:
        """Whether the last child that was started became ready; None where no function is isolated."""
        return self._pause_s == 0.0 if self._functions else None

    async def start(self) -> None:
        """Start the warm children, and wait until the first one is ready.

        Raises:
            HookError: A child could not load the functions, or a hook failed.
        """
        if not self._functions:
            return
        self._first = asyncio.get_running_loop().create_future()
        try:
            tried = self._spawn() if self.settings.warm == 0 else None
            self._warm_up()
            problem = await self._first
            if tried is not None:
                tried.close()
        except OSError as error:
            problem = str(error)
        finally:
            self._first = None
        if problem:
            await self.stop()
            raise HookError(f"the child process for isolated functions cannot serve: {problem}")

    def take(self, tenant: Tenant) -> Child | None:
        """A child for one invocation; it may still be starting, and takes frames nevertheless.

        None: the tenant gets a child later, once one is free or may be started.

        Raises:
            Overloaded: The allowed number of children runs, or the system cannot start one more process.
        """
        places = self.settings.most + sum(one.is_leaving for one in self.busy)
        if len(self.busy) + len(self._waiting) >= places:
            raise Overloaded(
                f"{len(self.busy)} isolated invocations are running, and no more are allowed at once (INVOKER_CHILDREN)"
            )
        child = self._found()
        if child is None:
            self._waiting.append(tenant)
            return None
        return self._taken(child, tenant)

    def _found(self) -> Child | None:
        """A free child: the one that was used last, or a new one; None if no child is free or may be started now.

        Raises:
            Overloaded: The system cannot start one more process.
        """
        if len(self.busy) >= self.settings.most:
            return None
        if self._idle:
            return self._idle.pop()
        if not self._may_start:
            return None
        try:
            return self._spawn()
        except OSError as error:
            raise Overloaded(f"no process can be started for an isolated function: {error}") from None

    @property
    def _may_start(self) -> bool:
        return sum(not (one.is_ready or one.is_gone) for one in self._all) < self.settings.starts

    def _taken(self, child: Child, tenant: Tenant) -> Child:
        child.tenant = tenant
        child.served += 1
        child.is_leaving = False
        self.busy.add(child)
        self._warm_later()
        return child

    def give_up(self, tenant: Tenant) -> None:
        """Note that the tenant needs no child any more."""
        if tenant in self._waiting:
            self._waiting.remove(tenant)

    def give_back(self, child: Child) -> None:
        """Take back a child whose user code has returned, or was never begun."""
        child.tenant = None
        self.busy.discard(child)
        self._keep(child)
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        while self._waiting:
            try:
                child = self._found()
            except Overloaded as error:
                self._waiting.popleft().child_ended(str(error), lacked_memory=False)
                continue
            if child is None:
                return
            tenant = self._waiting.popleft()
            tenant.given(self._taken(child, tenant))

    def _keep(self, child: Child) -> None:
        if self._is_closed or child.is_gone:
            child.close()
        elif child.is_worn or child.served >= _SERVES:
            child.close()
            self._warm_later()
        else:
            self._idle.append(child)
            child.idle_since = self._now()
            if self._trimming is None and len(self._idle) > self.settings.warm:
                self._trimming = asyncio.get_running_loop().call_later(_IDLE_S, self._trim)

    async def stop(self) -> None:
        """Let all children end; kill those that take too long."""
        self._is_closed = True
        for timer in (self._warming, self._trimming):
            if timer is not None:
                timer.cancel()
        children = list(self._all)
        for one in children:
            one.kill() if one in self.busy else one.close()
        limit_s = sum(one.hooks.stop_limit_s for one in self._functions) + _END_S
        if children:
            await asyncio.wait([asyncio.ensure_future(one.over(limit_s)) for one in children])
        self._janitor.close()

    def abandon(self) -> None:
        """Kill all children without waiting for them; for a process whose loop has ended."""
        self._is_closed = True
        for one in list(self._all):
            one.kill()
        self._janitor.close()

    # What children report; `Keeper`.

    def ready(self, child: Child, problem: str) -> None:  # noqa: ARG002 - as `Keeper`
        """Note that the child has loaded its functions; if it cannot, ``problem`` is the reason, otherwise empty."""
        if self._first is not None and not self._first.done():
            self._first.set_result(problem)
        if problem:
            log.error("a child process for isolated functions cannot serve: %s", problem)
        else:
            self._pause_s = 0.0
        self._serve_waiting()
        self._warm_later()

    def left(self, child: Child, *, is_worn: bool) -> None:
        """Take note that the child's user code has returned."""
        child.is_worn = child.is_worn or is_worn
        self.give_back(child)

    def ended(self, child: Child) -> None:
        """Forget a child whose process has ended."""
        self._all.discard(child)
        self._janitor.ended(child.pid)
        self.busy.discard(child)
        if child in self._idle:
            self._idle.remove(child)
            if not self._is_closed:
                log.warning("an idle child process has ended; another one takes its place")
        if self._first is not None and not self._first.done() and not child.is_ready:
            self._first.set_result("its process ended before it was ready")
        self._serve_waiting()
        if not child.is_ready:
            self._pause_s = min(max(_PAUSE_S, 2 * self._pause_s), _MOST_PAUSE_S)
        self._warm_later()

    # Private helpers.

    def _warm_later(self) -> None:
        """Start the missing children, in a later turn of the loop."""
        if self._warming is None and not self._is_closed and self._is_short and self._may_start:
            self._warming = asyncio.get_running_loop().call_later(self._pause_s, self._warm_up)

    @property
    def _is_short(self) -> bool:
        """Whether one more child should start: there are too few, or the next call would find none."""
        count = len(self._idle) + len(self.busy)
        warm, most = self.settings.warm, self.settings.most
        return count < warm or (not self._idle and warm > 0 and count < most)

    def _trim(self) -> None:
        """End the children that are no longer needed after a burst of calls, the least recently used first."""
        self._trimming = None
        spare = len(self._idle) - self.settings.warm
        for child in self._idle[: max(0, spare)]:
            due_s = child.idle_since + _IDLE_S - self._now()
            if due_s > 0:
                self._trimming = asyncio.get_running_loop().call_later(due_s, self._trim)
                return
            self._idle.remove(child)
            child.close()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _warm_up(self) -> None:
        self._warming = None
        if self._is_closed or self._waiting or not (self._is_short and self._may_start):
            return
        try:
            self._idle.append(self._spawn())
        except OSError as error:
            log.error("no process can be started for an isolated function: %s", error)
            self._pause_s = min(max(_PAUSE_S, 2 * self._pause_s), _MOST_PAUSE_S)
        self._warm_later()

    def _spawn(self) -> Child:
        self._hello = self._hello or self._said()
        child = Child(self, asyncio.get_running_loop())
        child.start(self._hello)
        self._all.add(child)
        self._janitor.began(child.pid)
        return child

    def _said(self) -> Hello:
        """Make the first frame that each child gets.

        Raises:
            StartupError: A function has no entrypoint and cannot be pickled.
        """
        return Hello(list(sys.path), [_loaded(one) for one in self._functions], dict(self.settings.told))


class Janitor:
    """Kills the programs that children have started if this process is killed; see `janitor`, a program of its own."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def began(self, group: int) -> None:
        """Note a child that has begun; its process group has this number."""
        if self._process is None:
            program = Path(__file__).with_name("janitor.py")
            ours, theirs = os.pipe()
            # The janitor inherits these blocked signals, so it lives until this process ends, which may take a while.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-I", "-S", str(program), str(ours)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(ours,),
                    start_new_session=True,
                )
            except OSError:
                os.close(theirs)
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                os.close(ours)
            self._told = theirs
        self._tell(f"+{group}\n")

    def ended(self, group: int) -> None:
        """Note that no process of the group remains."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the janitor's process end, and wait for its end."""
        process, self._process = self._process, None
        if process is not None:
            os.close(self._told)
            process.wait()

    def _tell(self, line: str) -> None:
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError):  # another program has killed the janitor
                os.write(self._told, line.encode())


def _loaded(function: Function) -> Loaded:
    spec = function.spec
    if spec.entrypoint:
        return Loaded(spec.name, spec.entrypoint)
    import cloudpickle  # only functions that were given as objects, not loaded, have no entrypoint

    try:
        return Loaded(spec.name, "", cloudpickle.dumps(function.hooks.target))
    except Exception as error:  # noqa: BLE001 - any of the author's objects may be in it
        raise StartupError(
            f"'{spec.name}' cannot be sent to a child process: {error}; name it by its entrypoint, as module:function"
        ) from None
