"""`SessionReactor`: one session of many invocations on the loop, which stores what it receives.

A `Reactor` whose session bounds its own memory (ADR 8). What differs:

* The session keeps a frame that no function wants yet. So reading pauses only while the session says that it
  `is_full`. The session *stalls* an input that was fed enough, and is given `Wants` when the function has taken most
  of it.
* A session that `hears_waits` is also notified which inputs a function waits for. Once the peer has half-closed, only
  the session knows that nothing will come for them; and a full session has to read on for a function that starves.
* A step may cause further events at once (a refused Open is Finished, an output of one invocation feeds another). The
  steps for these events are queued behind the steps that wait already, in the order in which the session gave them. So
  there is no recursion, however long the chain.
* A session may fetch URIs and set timers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias

from invoker.core.invocation import Invocation
from invoker.core.steps import (
    Close,
    Elapsed,
    Event,
    Fetch,
    Fetched,
    Finished,
    Open,
    Step,
    Timer,
    Wants,
)
from invoker.core.streams import Limits
from invoker.errors import InternalError, InvocationError, ShuttingDown, Status
from invoker.errors.wording import draining
from invoker.execution.bodies.runner import Runner, later
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.shared import heed_all
from invoker.execution.loop.wire import Wire

log = logging.getLogger(__name__)

Fetching: TypeAlias = Callable[[str, int, Callable[[bytes], None]], Awaitable[None]]
"""Fetches a URI, up to a limit of bytes, and hands over each piece; raises InvocationError."""

_MANY_FRAMES = 2**31


class StoringSession(Protocol):
    """A session that stores what it receives; see `invoker.core.session` for the methods that all sessions have."""

    headers: tuple[tuple[str, str], ...]
    """Headers of the response, sent when the session starts."""

    stalled: set[tuple[str, int]]
    """The inputs, by invocation and index, for which the session holds back messages."""

    @property
    def hears_waits(self) -> bool:
        """Whether the session also wants a `Wants` for each empty input for which a function waits."""

    @property
    def is_full(self) -> bool:
        """Whether the wire should read no more until this is False again."""

    @property
    def held(self) -> int:
        """Payload bytes that the session stores."""

    def receive(self, frame: Any) -> Iterable[Step]:
        """Translate one frame of the peer."""

    def half_close(self) -> Iterable[Step]:
        """Translate the normal end of the peer's frames."""

    def deliver(self, event: Event) -> Iterable[Step]:
        """Translate an event of an invocation or the store into steps."""

    def release(self) -> None:
        """Drop everything that is stored, since the conversation is over (E-003)."""


class SessionWire(Wire, Protocol):
    """A wire with headers of the response, which ``accepted`` sends; the session adds its own."""

    headers: tuple[tuple[str, str], ...]


class SessionReactor(Reactor):
    """One session on one wire, with the invocations that it opened.

    Args:
        session: Translates frames, and stores messages.
        wire: Carries the frames.
        driver: Runs bodies.
        on_close: Called once, with the ending to send to the peer.
        deadline: The deadline on the clock of ``time.monotonic``, or None; enforced by the wire.
        hard_bytes: Bytes of unread payload at which an invocation fails; the session feeds less than this.
        window: Messages that the session feeds an input ahead of its function.
        fetch: Fetches the data of a URI.
    """

    def __init__(
        self,
        session: StoringSession,
        wire: SessionWire,
        driver: Driver,
        on_close: Callable[[Close], None],
        *,
        deadline: float | None = None,
        hard_bytes: int = 512 * 1024 * 1024,
        window: int = 64,
        fetch: Fetching,
    ) -> None:
        super().__init__(session, wire, driver, on_close, deadline=deadline, is_counted=False)
        self._is_halted = False  # whether reading from the wire is paused
        self._storing = session
        self._share = driver.engine.memory.share()
        self._share.end = partial(later, asyncio.get_running_loop(), self.fail)
        self._low = window // 2
        self._limits = Limits(window, hard_bytes, _MANY_FRAMES, hard_bytes)
        self._fetch = fetch
        self._fetches: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._work: deque[Step] = deque()
        self._is_working = self._is_looking = False
        self._began = time.monotonic()
        self._actions = 0
        driver.sessions.running += 1
        driver.drains.add(self._drained)
        wire.headers = (*wire.headers, *session.headers)
        wire.accepted()  # E-014

    # The following implements the listener of the call, which receives what the peer sends.

    @property
    def settles(self) -> bool:
        """Always true: a broken end must not be taken for a half-close (E-010)."""
        return True

    @property
    def stalled(self) -> Collection[tuple[str, int]]:
        """The inputs, by invocation and index, for which the session holds back messages."""
        return self._storing.stalled

    def arrived(self, frame: Any | None) -> bool:
        """Apply one frame, or the half-close (None); returns whether more is wanted now."""
        if self._is_closed:
            return True
        try:
            self._take(self._storing.half_close() if frame is None else self._storing.receive(frame))
            self._weigh()
        except InvocationError as error:
            self.fail(error)
        except Exception:
            log.exception("a session failed")
            self.fail(InternalError())
        else:
            if frame is None and not self._is_closed:
                self.driver.linger(self, self._lingers)
            if self.is_paused or self.hears_waits:
                self.resume()  # readers that wait already do not report it again
        self._is_halted = self._storing.is_full
        return not self._is_halted

    def _weigh(self) -> None:
        held, share = self._storing.held, self._share
        if held > share.mark:
            share.grow(held)
        elif held < share.charged:
            share.shrink(held)

    def resume(self) -> None:
        """Check all inputs once this turn is over, since one may have room again or be waited for."""
        if not self._is_looking and not self._is_closed and (self.is_paused or self.hears_waits):
            self._is_looking = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_looking = False
        did_feed = False
        for key, index in list(self._storing.stalled):
            runner = self.runners.get(key)
            if runner is not None and len(runner.invocation.inputs[index].queue) <= self._low:
                did_feed = True
                self._tell(Wants(key, index))
        if self.hears_waits:
            for runner in list(self.runners.values()):
                for stream in runner.invocation.inputs:
                    if stream.waiters and not stream.queue and not stream.is_ended:
                        self._tell(Wants(runner.invocation.key, stream.index, waits=True))
        if did_feed and self.is_paused:
            self._look_again()

    def _look_again(self) -> None:
        """Resume if a stalled input has room, because its thread may have read it before messages were held back."""
        for key, index in self._storing.stalled:
            runner = self.runners.get(key)
            if runner is not None and len(runner.invocation.inputs[index].queue) <= self._low:
                self.resume()
                return

    # Steps.

    def _take(self, steps: Iterable[Step]) -> None:
        """Do the session's steps after the waiting ones, and start the invocations that they opened."""
        self._work.extend(steps)
        self.is_paused = bool(self._storing.stalled)  # set first: a body's thread reads, then checks this
        self.hears_waits = self._storing.hears_waits
        if self.driver.shared:
            heed_all(self, self.runners.values())
        if self._is_working:
            return
        self._is_working = True
        try:
            while (self._work or self._opened) and not self._is_closed:
                if self._work:
                    self._perform(self._work.popleft())
                else:
                    self._start()
        finally:
            self._is_working = False
        if self._is_halted and not self._storing.is_full:
            self._is_halted = False
            self.wire.ask()
        if self.driver.engine.is_draining:
            self._drained()

    def _deliver(self, event: Event) -> None:
        self._tell(event)
        if self.is_paused:
            self.resume()  # a reader that waits for another invocation's output does not report it again

    def _tell(self, event: Event) -> None:
        if self._is_closed:
            return
        try:
            self._take(self._storing.deliver(event))
        except InvocationError as error:
            self.fail(error)
        except Exception:
            log.exception("a session failed")
            self.fail(InternalError())

    def _perform(self, step: Step) -> None:
        if type(step) is Fetch:
            self._begin(step)
        else:
            super()._perform(step)

    def _admit(self, step: Open) -> Invocation:
        self._actions += 1
        deadline = None if step.is_shared else self.deadline
        is_counted = self.is_counted or step.is_shared
        return self.driver.engine.open(step, deadline=deadline, limits=self._limits, is_counted=is_counted)

    def _may_begin(self, runner: Runner) -> bool:  # noqa: ARG002 - the session decides when the function may be called
        return True

    # Fetching and time.

    def _begin(self, step: Fetch) -> None:
        task = self._loop.create_task(self._get(step), name="fetch")
        self._fetches.add(task)
        task.add_done_callback(self._fetches.discard)
        self.driver.watch(task, "a fetch")

    async def _get(self, step: Fetch) -> None:
        key = step.key
        try:
            await self._fetch(step.uri, step.most, lambda data: self._deliver(Fetched(key, data)))
        except InvocationError as error:
            self._deliver(Fetched(key, is_last=True, error=error))
        except Exception:
            log.exception("a reference could not be fetched")
            self._deliver(Fetched(key, is_last=True, error=InternalError()))
        else:
            self._deliver(Fetched(key, is_last=True))

    def _wind(self, step: Timer) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.0, step.delay_s), self._deliver, Elapsed())

    # Endings.

    def fail(self, error: InvocationError) -> None:
        """End the session and its invocations with ``error``, of which the session is not notified."""
        self._leave(error)

    def _finish(self, runner: Runner, error: InvocationError | None) -> None:
        if self._end(runner, error):
            self._deliver(Finished(runner.invocation.key, error))
            self.resume()

    def _drained(self) -> None:
        """End the session if it has no invocations, since it may open no more while the process drains (ET-93)."""
        if not self.runners and not self._is_working and not self._is_closed:
            self.fail(ShuttingDown(draining("actions")))

    def _close(self, close: Close) -> None:
        if self._is_closed:
            return
        self._work.clear()
        for task in list(self._fetches):
            if task is not asyncio.current_task():
                task.cancel()
        self.driver.drains.discard(self._drained)
        self._tell_end(close.error)
        super()._close(close)
        self._share.close()
        self._storing.release()  # a body that does not end keeps this object alive, but not what the session stored

    def _tell_end(self, error: InvocationError | None) -> None:
        """Count the session, and log how it ended, which the log lines of its actions need not show."""
        status = error.status if error is not None else Status.OK
        counts = self.driver.sessions
        counts.running -= 1
        counts.ended[status] = counts.ended.get(status, 0) + 1
        told = {"detail": str(error)} if error is not None else {}
        seconds = round(time.monotonic() - self._began, 6)
        log.info("session ended", extra={"status": status.name, "seconds": seconds, "actions": self._actions, **told})
