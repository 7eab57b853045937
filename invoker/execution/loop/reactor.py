"""`Reactor`: one conversation on the loop whose frames come by callbacks, without a task for reading.

A call, or the task of a request (`execution.loop.request`), calls `arrived` for each frame, whose steps are applied at
once; bodies write to the call themselves. Only bodies are tasks.

The conversation ends with the session's `Close`. Bodies whose user code has not returned by then are asked to end, and
are watched by the driver, so a peer never waits for a function's ``finally``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from invoker.core.invocation import Invocation
from invoker.core.session import Session
from invoker.core.steps import (
    Ask,
    Await,
    Cancel,
    Close,
    CloseOutput,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Join,
    Open,
    OutputEnded,
    Send,
    Step,
    Subscribe,
    Timer,
)
from invoker.errors import Cancelled, DeadlineExceeded, InternalError, InvocationError, StopInvocation, let_go
from invoker.execution.bodies.runner import Runner, later, until_room
from invoker.execution.driver import Driver
from invoker.execution.loop.shared import Shared, heed_all
from invoker.execution.loop.subscription import StoreSubscription
from invoker.execution.loop.wire import GONE, Wire
from invoker.execution.pace.slices import SLICE
from invoker.message import Message

log = logging.getLogger(__name__)

EARLY_S = 0.01
"""Seconds by which the transport may enforce a deadline before it has passed on our own clock."""


class Reactor:
    """One session on one wire, with the invocations that it opened.

    Args:
        session: Translates the frames.
        wire: Carries the frames.
        driver: Runs bodies.
        on_close: Called once, with the ending to send to the peer.
        deadline: The deadline on the clock of ``time.monotonic``, or None; enforced by the wire.
        is_counted: Whether the engine counts the bytes that invocations hold; otherwise the wire does.
        is_early: Whether the conversation began before the drain, which then does not refuse its invocations (G-104).
    """

    hears_waits = False

    def __init__(
        self,
        session: Session,
        wire: Wire,
        driver: Driver,
        on_close: Callable[[Close], None],
        *,
        deadline: float | None = None,
        is_counted: bool = True,
        is_early: bool = False,
    ) -> None:
        self.is_counted, self.is_early = is_counted, is_early
        self.session, self.driver = session, driver
        self.wire: Wire = wire
        self.deadline = deadline
        self.is_paused = False
        self.runners: dict[str, Runner] = {}
        self._opened: list[Runner] = []
        self._on_close = on_close
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._emitted = 0
        self._has_room = True
        self._subscription: StoreSubscription | None = None
        driver.entered(self)

    # The following implements the listener of the call, which receives what the peer sends.

    @property
    def settles(self) -> bool:
        """Whether the call must check that an end of the input is not a cancel (R-109)."""
        if len(self.runners) == 1:
            (runner,) = self.runners.values()
            return runner.invocation.heeds_end
        return any(one.invocation.heeds_end for one in self.runners.values())

    def arrived(self, frame: Any | None) -> bool:
        """Apply one frame, or the half-close (None); returns whether more is wanted now."""
        if self._is_closed:
            return True  # the rest of the input is discarded
        try:
            for step in self.session.half_close() if frame is None else self.session.receive(frame):
                if type(step) is Feed:
                    self._feed(step)
                else:
                    self._perform(step)
            if self._opened:
                self._start()
        except InvocationError as error:
            self.fail(error)
        except Exception:
            log.exception("a session failed")
            self._leave(InternalError())
        if frame is None and not self._is_closed:
            self.driver.linger(self, self._lingers)
        if len(self.runners) == 1:
            (runner,) = self.runners.values()
            if not runner.invocation.budget.is_high:
                return True
        if not self.runners or self._wants_input():
            return True
        # Set the flag, then check again: a body's thread writes first and then reads the flag, so no change is missed.
        self.is_paused = True
        heed_all(self, self.runners.values())
        if not self._wants_input():
            return False
        self.is_paused = False
        return True

    def gone(self) -> None:
        """End everything without an answer, because the peer is gone (R-115)."""
        late = self.deadline is not None and time.monotonic() >= self.deadline - EARLY_S
        error = DeadlineExceeded() if late else Cancelled()
        self._leave(error)

    def _wants_input(self) -> bool:
        running = [runner.invocation for runner in self.runners.values()]
        return all(one.wants_input for one in running) or any(one.is_starving for one in running)

    def resume(self) -> None:
        """Continue to read if there is room again, or if a reader starves (R-129)."""
        if self.is_paused and self._wants_input():
            self.is_paused = False
            self.wire.ask()

    # Steps.

    def _perform(self, step: Step) -> None:
        if type(step) is Send:
            self._has_room = self.wire.write(step.frame)
        elif type(step) is Feed:
            self._feed(step)
        elif type(step) is Close:
            self._close(step)
        elif type(step) is Open:
            self._open(step)
        elif type(step) is Join:
            self._join(step.id, is_owner=False)
        elif type(step) is Timer:
            self._wind(step)
        elif isinstance(step, (Ask, Await, Subscribe)):
            self._at_store(step)
        else:
            self._command(step)

    def _feed(self, step: Feed) -> None:
        if (runner := self.runners.get(step.id)) is None:
            return  # the function has returned
        try:
            runner.feed(step)
        except InvocationError as error:
            self._finish(runner, error)

    def _command(self, step: Step) -> None:
        assert isinstance(step, (EndInput, Cancel, CloseOutput))
        if (runner := self.runners.get(step.id)) is None:
            return
        if isinstance(runner.host, Shared) and self not in runner.host.owners and not isinstance(step, Cancel):
            return
        try:
            if isinstance(step, EndInput):
                runner.end_inputs(step)
            elif isinstance(step, CloseOutput):
                runner.close_output(step)
            else:
                self._finish(runner, step.error)
        except InvocationError as error:
            self._finish(runner, error)

    def _open(self, step: Open) -> None:
        if step.is_shared and self._join(step.id, is_owner=True):
            return
        try:
            invocation = self._admit(step)
        except InvocationError as error:
            self.driver.refused(step, error)
            self._deliver(Finished(step.id, error))
            return
        invocation.peer = getattr(self.wire, "peer", "")
        if step.is_shared:
            self.runners[step.id] = Shared(self.driver, invocation, self).join(self, is_owner=True)
        else:
            self.runners[step.id] = runner = self.driver.runner(invocation, self)
            invocation.may_be_ended(partial(later, runner.loop, self._relieve, step.id))
            self._opened.append(runner)
        self.wire.accepted()

    def _join(self, key: str, *, is_owner: bool) -> bool:
        """Hold a shared invocation, and return whether it exists; if not, a caller that wants to own it opens it."""
        shared: Shared | None = self.driver.shared.get(key)
        if shared is not None:
            self.runners[key] = shared.join(self, is_owner=is_owner)
        elif not is_owner:
            self._deliver(Finished(key, Cancelled(f"no invocation {key!a}: it is over, or never existed")))
        return shared is not None

    def let_go(self, key: str, error: InvocationError | None) -> None:
        """Forget a shared invocation that this conversation held, since it is over."""
        self.runners.pop(key, None)
        self.tell(Finished(key, error))
        self.resume()

    def _wind(self, step: Timer) -> None:
        """R-170: Start the timer of a session that waits before it sends a refusal."""
        if not self.driver.may_wait(self):
            self._deliver(Elapsed())
            return
        self._timer = asyncio.get_running_loop().call_later(step.delay_s, self.tell, Elapsed())

    def _at_store(self, step: Ask | Await | Subscribe) -> None:
        """Ask the store, or subscribe to a space. The first call makes the subscription."""
        if self._subscription is None:
            self._subscription = StoreSubscription(self.driver, self)
        self._subscription.perform(step)

    def _relieve(self, key: str, error: InvocationError) -> None:
        """End this invocation, because the process holds too many bytes and this invocation holds most of them."""
        runner = self.runners.get(key)
        if runner is not None:
            self._finish(runner, error)
            if self._opened:
                self._start()

    def _admit(self, step: Open) -> Invocation:
        is_counted, deadline = self.is_counted or step.is_shared, None if step.is_shared else self.deadline
        return self.driver.engine.open(step, deadline=deadline, is_counted=is_counted, is_early=self.is_early)

    def _start(self) -> None:
        """Start the bodies that a frame opened. All steps of the frame are done, so its messages are checked."""
        opened, self._opened = self._opened, []
        for runner in opened:
            if runner.invocation.is_finished:
                continue
            if not self._may_begin(runner):
                self._opened.append(runner)
                continue
            if runner.invocation.got_nothing:
                self._finish(runner, None)
                continue
            try:
                self.driver.start(runner)
            except InvocationError as error:
                self._finish(runner, error)

    def _may_begin(self, runner: Runner) -> bool:
        """Whether all inputs have come that the call of the body needs (R-166)."""
        invocation = runner.invocation
        if not invocation.may_begin():
            if (patience_s := invocation.patience_s) is not None:
                asyncio.get_running_loop().call_later(patience_s, self._settled, invocation)
            return False
        return True

    def _settled(self, invocation: Invocation) -> None:
        invocation.is_settled = True
        self._start()

    # What bodies report; `Host`.

    def emitted(self, invocation: Invocation, index: int, message: Message[bytes]) -> Awaitable[None] | None:
        """Send one output; the result ends when the peer has room (E-110), or other bodies had a turn."""
        if invocation.is_finished:
            raise StopInvocation
        invocation.emit(index, message)
        self._has_room = True
        self._deliver(Emitted(invocation.key, index, message))
        if self._opened:
            self._start()
        if invocation.is_finished:
            raise StopInvocation  # its wait for room would never end
        if not self._has_room:
            return until_room(invocation, self.wire.room(), self.driver.slices)
        self._emitted += 1
        return None if self._emitted % SLICE else self.driver.slices.next()

    def ended(self, invocation: Invocation, index: int) -> None:
        """Note that one of several outputs ended normally."""
        if not invocation.is_finished:
            self._deliver(OutputEnded(invocation.key, index))
            self.resume()

    def finished(self, invocation: Invocation, error: InvocationError | None) -> None:
        """Take the invocation's ending; later ones are ignored."""
        runner = self.runners.get(invocation.key)
        if runner is not None and runner.invocation is invocation:
            self._finish(runner, error)
            if self._opened:
                self._start()

    # Endings.

    def fail(self, error: InvocationError) -> None:
        """End the conversation and its invocations at once: a frame breaks its protocol, or it cannot continue."""
        for runner in list(self.runners.values()):
            self._finish(runner, error)
        self._close(Close(error))

    def _leave(self, error: InvocationError) -> None:
        """End the conversation as `fail` does, without notifying the session, which takes no more events."""
        for runner in list(self.runners.values()):
            self._end(runner, error)
        self._close(Close(error))

    def _finish(self, runner: Runner, error: InvocationError | None) -> None:
        if self._end(runner, error):
            self._deliver(Finished(runner.invocation.key, error))

    def _end(self, runner: Runner, error: InvocationError | None) -> bool:
        self.runners.pop(runner.invocation.key, None)
        if isinstance(runner.host, Shared):
            runner.host.leave(self, error)
            return True
        if not runner.finish(error):
            return False
        self.driver.ended(runner)
        self.resume()
        return True

    def tell(self, event: Event) -> bool:
        """Give the session an event that no frame has caused; False when the next one should wait for room."""
        if self._is_closed:
            return True
        self._has_room = True
        try:
            self._deliver(event)
            if self._opened:
                self._start()
        except InvocationError as error:
            self.fail(error)
        return self._has_room

    def _deliver(self, event: Event) -> None:
        try:
            for step in self.session.deliver(event):
                if type(step) is Send:
                    self._has_room = self.wire.write(step.frame)
                else:
                    self._perform(step)
        except Exception as error:  # the caller may be a task that is never awaited, so the call would hang
            if isinstance(error, InvocationError):
                raise
            log.exception("a session failed")
            self._leave(InternalError())

    def _close(self, close: Close) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.driver.waiting.discard(self)
        if self._subscription is not None:
            self._subscription.leave()
            self._subscription = None  # it refers to this reactor, which would wait for the garbage collector
        for runner in list(self.runners.values()):  # the invocations that the session left open when it closed
            self._end(runner, Cancelled("the conversation is over"))
        self._on_close(close)
        let_go(close.error)  # its frames refer to a step that refers to it, a cycle around the last message
        self._on_close, self.wire = GONE.close, GONE  # both refer to this reactor and would live as long as it
        self.driver.exited(self)

    def _lingers(self) -> None:
        for runner in (one for one in self.runners.values() if one.host is self):  # others may feed shared ones
            log.warning(
                "an invocation goes on although its inputs ended %s s ago",
                self.driver.settings.lingering_s,
                extra={"invocation": runner.invocation.id, "function": runner.invocation.function.spec.name},
            )
