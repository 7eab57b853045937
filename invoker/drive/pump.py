"""The asyncio pump: runs any session over any channel.

One task reads frames and applies the session's steps; each body has a runner of its own, which writes its outputs
itself behind one lock around the wire. A single forwarder for all of them would dead-lock once a session feeds the
output of one invocation into another. The conversation ends with the session's `Close`; bodies that have not left
user code by then are told to, and are watched by the driver, so a peer never waits for somebody's ``finally``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import Any, Protocol

from invoker.core.invocation import Invocation
from invoker.core.session import Session
from invoker.core.steps import (
    Cancel,
    Close,
    CloseOutput,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
    Step,
    Timer,
)
from invoker.drive.bodies.runner import Runner, later
from invoker.drive.driver import Driver
from invoker.errors import Cancelled, DeadlineExceeded, InternalError, InvocationError, StopInvocation
from invoker.message import Message

__all__ = ["Channel", "Conversation", "pump"]

log = logging.getLogger(__name__)


class Channel(Protocol):
    """A transport's side of one conversation."""

    async def read(self) -> Any | None:
        """The peer's next frame; None when it has half-closed.

        Raises:
            InvocationError: The peer is gone, or sent what the transport refuses.
        """

    async def settle(self) -> None:
        """Wait until the end that `read` told can be believed; a peer that is gone cancels the conversation (R-109)."""

    async def accepted(self) -> None:
        """The first invocation was admitted: whatever can be told to the peer now, is (R-133)."""

    async def write(self, frame: Any) -> None:
        """Send one frame; returns when there is room for more."""


async def pump(
    session: Session,
    channel: Channel,
    driver: Driver,
    *,
    deadline: float | None = None,
    is_counted: bool = True,
    is_early: bool = False,
) -> InvocationError | None:
    """Run one conversation to its end.

    Args:
        session: Translates.
        channel: Carries.
        driver: Runs bodies.
        deadline: On the clock of ``time.monotonic``, or None.
        is_counted: Whether the driver counts what invocations hold; else the channel does.
        is_early: It began before the drain, which therefore does not refuse what it opens (G-104).

    Returns:
        The error to tell the peer as the conversation's status; None for OK.

    Raises:
        asyncio.CancelledError: The awaiting task was cancelled (the peer is gone); every invocation was cancelled too.
    """
    conversation = Conversation(session, channel, driver, deadline=deadline, is_counted=is_counted)
    conversation.is_early = is_early
    return await conversation.run()


class Conversation:
    """One session on one channel, with the invocations that it opened."""

    hears_waits = False
    is_early = False

    def __init__(
        self,
        session: Session,
        channel: Channel,
        driver: Driver,
        *,
        deadline: float | None = None,
        is_counted: bool = True,
    ) -> None:
        self.is_counted = is_counted
        self.session = session
        self.channel = channel
        self.driver = driver
        self.deadline = deadline
        self.is_paused = False
        self.runners: dict[str, Runner] = {}
        self._opened: list[Runner] = []
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[InvocationError | None] = self._loop.create_future()
        self._wire = asyncio.Lock()
        self._room: asyncio.Future[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._expiry: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._elapsing: asyncio.Task[None] | None = None
        self._relief: asyncio.Task[None] | None = None

    async def run(self) -> InvocationError | None:
        """Run until the session closes; see `pump`."""
        self.driver.entered(self)
        reader = self._loop.create_task(self._read(), name="read")
        if self.deadline is not None:
            delay = max(0.0, self.deadline - time.monotonic())
            self._timers.append(self._loop.call_later(delay, self._expire))
        try:
            return await self._closed
        except asyncio.CancelledError:
            self._abandon()
            raise
        finally:
            reader.cancel()
            for timer in self._timers:
                timer.cancel()
            for task in (self._expiry, self._settling, self._elapsing, self._relief):
                if task is not None:
                    task.cancel()
            for runner in list(self.runners.values()):  # none is left, unless the session closed without them
                self._end(runner, Cancelled("the conversation is over"))
            self.driver.waiting.discard(self)
            self.driver.exited(self)

    # What the peer sends.

    async def _read(self) -> None:
        channel, session = self.channel, self.session
        try:
            while (frame := await channel.read()) is not None:
                for step in session.receive(frame):
                    if type(step) is Feed:
                        await self._feed(step)
                    else:
                        await self._perform(step)
                if self._opened:
                    await self._start()
                if self.runners:
                    await self._keep_to_budget()
            if any(one.invocation.heeds_end for one in self.runners.values()):
                await channel.settle()
            for step in session.half_close():
                await self._perform(step)
            await self._start()
            self._timers.append(self._loop.call_later(self.driver.settings.lingering_s, self._lingers))
        except InvocationError as error:
            await self.fail_all(error)
        except Exception:
            log.exception("a session or channel failed")
            await self.fail_all(InternalError())

    async def _keep_to_budget(self) -> None:
        """Wait while inputs are above their mark and nobody starves (R-128, R-129)."""
        if len(self.runners) == 1:
            (runner,) = self.runners.values()
            if not runner.invocation.budget.is_high:
                return
        self.is_paused = True  # said first, looked at second: a body's thread does it the other way round
        while not self._wants_input():
            self._room = self._loop.create_future()
            await self._room
        self.is_paused = False

    def _wants_input(self) -> bool:
        running = [runner.invocation for runner in self.runners.values()]
        return all(one.wants_input for one in running) or any(one.is_starving for one in running)

    def resume(self) -> None:
        """Input may be read again, or somebody starves."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # Steps.

    async def _perform(self, step: Step) -> None:
        kind = type(step)
        if kind is Send:
            await self._send(step.frame)  # type: ignore[union-attr]
        elif kind is Feed:
            await self._feed(step)  # type: ignore[arg-type]
        elif kind is Close:
            if not self._closed.done():
                self._closed.set_result(step.error)  # type: ignore[union-attr]
        elif kind is Open:
            await self._open(step)  # type: ignore[arg-type]
        elif kind is Timer:
            await self._wind(step)  # type: ignore[arg-type]
        else:
            await self._command(step)

    async def _wind(self, step: Timer) -> None:
        """R-170: the session waits to tell a refusal."""
        if self.driver.may_wait(self):
            self._timers.append(self._loop.call_later(step.delay_s, self._elapse))
        else:
            await self._deliver(Elapsed())

    def _elapse(self) -> None:
        self._elapsing = self._loop.create_task(self._deliver(Elapsed()), name="elapse")

    async def _send(self, frame: Any) -> None:
        async with self._wire:
            if not self._closed.done():
                await self.channel.write(frame)
                return
        await asyncio.sleep(0)  # a body that never waits must not keep this conversation's task from its end

    async def _feed(self, step: Feed) -> None:
        runner = self.runners.get(step.id)
        if runner is None:
            return  # its function has returned
        try:
            runner.feed(step)
        except InvocationError as error:
            await self._finish(runner, error)

    async def _command(self, step: Step) -> None:
        assert isinstance(step, (EndInput, Cancel, CloseOutput))
        runner = self.runners.get(step.id)
        if runner is None:
            return
        try:
            if isinstance(step, EndInput):
                runner.end_inputs(step)
            elif isinstance(step, CloseOutput):
                runner.close_output(step)
            else:
                await self._finish(runner, step.error)
        except InvocationError as error:
            await self._finish(runner, error)

    async def _open(self, step: Open) -> None:
        try:
            invocation = self.driver.engine.open(
                step, deadline=self.deadline, is_counted=self.is_counted, is_early=self.is_early
            )
        except InvocationError as error:
            log.info(
                "invocation refused",
                extra={"function": step.function, "status": error.status.name, "detail": str(error)},
            )
            await self._deliver(Finished(step.id, error))
            return
        invocation.may_be_ended(partial(later, self._loop, self._relieve, step.id))
        runner = self.driver.runner(invocation, self)
        self.runners[step.id] = runner
        self._opened.append(runner)
        await self.channel.accepted()

    def _relieve(self, key: str, error: InvocationError) -> None:
        """The process holds too much, and this invocation most of it."""
        runner = self.runners.get(key)
        if runner is not None:
            self._relief = self._loop.create_task(self._finish(runner, error))

    async def _start(self) -> None:
        """Start the bodies that a frame opened, once all of its steps are done: what it fed is checked by then."""
        opened, self._opened = self._opened, []
        for runner in opened:
            if runner.invocation.is_finished:
                continue
            if not runner.invocation.may_begin():  # an option has not come
                self._opened.append(runner)
                if self._settling is None and (patience_s := runner.invocation.patience_s) is not None:
                    self._settling = self._loop.create_task(self._settle(runner.invocation, patience_s))
                continue
            if runner.invocation.got_nothing:
                runner.left.cancel()
                await self._finish(runner, None)
                continue
            try:
                runner.start()
            except InvocationError as error:
                runner.left.cancel()
                await self._finish(runner, error)
            else:
                self.driver.started(runner)

    async def _settle(self, invocation: Invocation, patience_s: float) -> None:
        await asyncio.sleep(patience_s)
        invocation.is_settled = True
        await self._start()

    # What bodies report; `Host`.

    async def emitted(self, invocation: Invocation, index: int, message: Message[bytes]) -> None:
        """Send one output; returns when the peer has room for it."""
        if invocation.is_finished:
            raise StopInvocation("the invocation is over")
        invocation.emit(index, message)
        for step in self.session.deliver(Emitted(invocation.key, index, message)):
            if type(step) is Send:
                await self._send(step.frame)
            else:
                await self._perform(step)
        if self._opened:
            await self._start()

    async def ended(self, invocation: Invocation, index: int) -> None:
        """One of several outputs ended normally."""
        if not invocation.is_finished:
            await self._deliver(OutputEnded(invocation.key, index))

    async def finished(self, invocation: Invocation, error: InvocationError | None) -> None:
        """The invocation's ending; later ones are ignored."""
        runner = self.runners.get(invocation.key)
        if runner is not None and runner.invocation is invocation:
            await self._finish(runner, error)

    # Endings.

    async def _finish(self, runner: Runner, error: InvocationError | None) -> None:
        if self._end(runner, error):
            await self._deliver(Finished(runner.invocation.key, error))

    def _end(self, runner: Runner, error: InvocationError | None) -> bool:
        self.runners.pop(runner.invocation.key, None)
        if not runner.finish(error):
            return False
        self.driver.engine.close(runner.invocation)
        if runner in self._opened:
            runner.left.cancel()  # its body has never started
        elif not runner.left.done():
            runner.stop()
        self.resume()
        return True

    async def _deliver(self, event: Event) -> None:
        for step in self.session.deliver(event):
            await self._perform(step)

    async def fail_all(self, error: InvocationError) -> None:
        """Every invocation of this conversation ends with ``error``, and so does the conversation."""
        for runner in list(self.runners.values()):
            await self._finish(runner, error)
        if not self._closed.done():
            self._closed.set_result(error)

    def _abandon(self) -> None:
        """The peer is gone: nobody is left to tell (R-115)."""
        late = self.deadline is not None and time.monotonic() >= self.deadline
        error = DeadlineExceeded("the deadline has passed") if late else Cancelled("the peer cancelled, or is gone")
        for runner in list(self.runners.values()):
            self._end(runner, error)

    def _expire(self) -> None:
        self._expiry = self._loop.create_task(self.fail_all(DeadlineExceeded("the deadline has passed")))

    def _lingers(self) -> None:
        for runner in self.runners.values():
            log.warning(
                "an invocation goes on although its inputs ended %s s ago",
                self.driver.settings.lingering_s,
                extra={"invocation": runner.invocation.id, "function": runner.invocation.function.spec.name},
            )
