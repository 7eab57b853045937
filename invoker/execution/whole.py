"""`Whole`: a conversation whose frames have all come before its function runs, in the thread that has read them.

Theory. No further frame comes, so nothing waits for input: the session translates all frames first, then the function
runs, and the frames of the session are kept in `sent`. The transport sends them together with the ending, once `run`
has returned. There is no queue and no turn at a gate, and the sweeper does not watch the conversation. A conversation
that takes long becomes *long*: its kept frames are sent, and the sweeper watches it (`Keeping`).

A call with one message for each input, whose function gives one value, is *unary* (`Held`). If a function gives several
iterators, each gets a thread of its own, since each may block in the author's code.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from typing import Any

from invoker.core.invocation import Invocation
from invoker.core.plan import Plan
from invoker.core.session import CallSession
from invoker.core.steps import (
    Ask,
    Cancel,
    Close,
    CloseOutput,
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
from invoker.core.streams import InputStream
from invoker.core.unary import Held, UnaryInvocation
from invoker.errors import Cancelled, Discarded, InternalError, InvocationError, StopInvocation
from invoker.execution.bodies.spread import Spread
from invoker.execution.bodies.sync import SyncInput
from invoker.execution.driver import Driver
from invoker.execution.keeping import Keeping
from invoker.execution.loop.request import carry_on
from invoker.execution.outlet import Outlet
from invoker.execution.placement import Run
from invoker.execution.thread.call_watchdog import why_gone
from invoker.execution.thread.leader_follower import Turn
from invoker.execution.thread.loop_handoff import LoopHandoff
from invoker.message import Message

log = logging.getLogger(__name__)


class Whole(Keeping):
    """One session with the one invocation that it opens, and the body of that invocation.

    Args:
        session: Translates the frames.
        driver: Has the engine, and tracks the conversation for a drain.
        outlet: The outlet of the transport.
        turn: The turn of this thread as the leader; without one the conversation is long from the beginning.
        deadline: The deadline on the clock of ``time.monotonic``, or None.
        is_counted: Whether unread input counts against the memory of the process; else the caller counts it.
        is_early: Whether the conversation began before the drain, which then does not refuse its invocation (G-104).
    """

    __slots__ = ("_has_ended", "_held", "_is_counted", "_is_early", "_messages", "deadline", "session")

    def __init__(
        self,
        session: CallSession,
        driver: Driver,
        outlet: Outlet,
        *,
        turn: Turn | None = None,
        deadline: float | None = None,
        is_counted: bool = True,
        is_early: bool = False,
    ) -> None:
        super().__init__(driver, outlet, turn)
        self.session = session
        self.deadline = deadline
        self._messages: list[Message[bytes]] = []
        self._held: Held | None = None
        self._is_counted, self._is_early, self._has_ended = is_counted, is_early, False

    def begin(self, held: Held) -> bool:
        """Open the invocation of a unary call that the session has already translated; `run` calls the function.

        Returns:
            Whether the invocation is open. If it was refused, `closed` and `sent` have the answer.
        """
        self._messages = held.messages
        return self._open(held.opening, held.plan, held.messages) is not None

    def run(self, frames: Iterable[Any] = ()) -> Close:
        """Run the conversation to its end, in this thread.

        Args:
            frames: All that the peer has sent, before it half-closed; ignored after `begin`.

        Returns:
            How it ended. The frames that it sent before are in `sent`, unless they are already at the peer.
        """
        try:
            if not self.is_open:
                self._receive(frames)
            if self.is_open and not self.invocation.is_finished:
                copy_context().run(self._serve)  # the thread may serve other calls later
        except Exception:
            log.exception("a session or transport failed")
            self.closed = Close(InternalError())
            if self.is_open and self.invocation.finish(InternalError()):
                self.driver.engine.close(self.invocation)
        finally:
            self.leave()
        return self.closed or Close()

    # What the peer has sent.

    def _receive(self, frames: Iterable[Any]) -> None:
        """Translate all frames; also their end, unless the function is to notice the end itself."""
        receive, may_begin = self.session.receive, False
        invocation: Invocation | None = None
        try:
            for frame in frames:
                steps = receive(frame)
                for step in steps:
                    if type(step) is Feed and invocation is not None:
                        invocation.feed(step)
                    elif type(step) is Ask:
                        self._hand_over(steps)
                        return
                    elif type(step) is Open or self._held is not None:
                        invocation = self._hold(step)
                    else:
                        self.perform(step)
                if self.closed is not None:
                    return
                if not may_begin and invocation is not None:
                    may_begin = not invocation.function.awaits_values or invocation.may_begin()
            self._received(invocation, may_begin=may_begin)
        except InvocationError as error:
            self._violated(error)

    def _violated(self, error: InvocationError) -> None:
        """End the conversation, and the invocation if one was opened, because a frame is refused."""
        held, self._held = self._held, None
        try:
            if held is not None:
                self._open_held(held)
        except InvocationError as earlier:
            error = earlier
        if self.is_open:
            self.break_off(error)
        else:
            self.closed = Close(error)

    def _received(self, invocation: Invocation | None, *, may_begin: bool) -> None:
        """Note that all frames are translated, and their end too, unless the function is to notice the end."""
        held, self._held = self._held, None
        if held is not None:
            if len(held.messages) == len(held.plan.inputs):
                self._has_ended = True
                self.begin(held)
                for step in self.session.half_close():
                    if type(step) is not EndInput:  # the invocation has all of its input
                        self.perform(step)
                return
            invocation = self._open_held(held)
        heeds_end = invocation is not None and invocation.heeds_end
        if not may_begin or not heeds_end:
            self._half_close(invocation, heeds_end=heeds_end)
            if not may_begin and invocation is not None:
                invocation.may_begin()

    def _hold(self, step: Step) -> Invocation | None:
        """Open an invocation now, or hold back steps that may be a unary call; returns the invocation if it is open."""
        if type(step) is Open:
            if self.driver.engine.catalog.renews:
                return self._open(step)  # the plan would make the function before the invocation is admitted
            try:
                plan = self.driver.engine.plan(step)
            except InvocationError:
                return self._open(step)  # `Engine.open` refuses the invocation
            if not plan.is_unary or plan.function.spec.is_async or step.is_shared:
                return self._open(step, plan)
            self._held = Held(plan, step, self.driver.engine.limits, is_counted=self._is_counted)
            return None
        held, self._held = self._held, None
        assert held is not None
        if held.takes(step):
            self._held = held
            return None
        invocation = self._open_held(held)
        if type(step) is Feed and invocation is not None:
            invocation.feed(step)
        else:
            self.perform(step)
        return invocation

    def _open_held(self, held: Held) -> Invocation | None:
        """Open an invocation that is not unary, and feed it the messages that were held back."""
        invocation = self._open(held.opening, held.plan)
        if invocation is not None:
            for step in held.steps[1:]:
                self.perform(step)
        return invocation

    def _hand_over(self, steps: Iterable[Step]) -> None:
        """Hand the conversation over to the loop until its end, because the session asks the store."""
        if self.turn is not None:
            self.turn.pass_on()
        rest = carry_on(
            self.session, steps, self.driver, self.sent.append,
            deadline=self.deadline, is_counted=self._is_counted, is_early=self._is_early,
        )  # fmt: skip
        self.closed = LoopHandoff(self.driver, self.outlet.is_gone).run(rest)

    def _half_close(self, invocation: Invocation | None, *, heeds_end: bool) -> None:
        """Translate the end of the frames, once it is certain."""
        if heeds_end:
            if self.outlet.settle_s:
                self.beat()
            self.outlet.await_end()
            self.started_s = time.monotonic()
        self._has_ended = True
        for step in self.session.half_close():
            if type(step) is EndInput and invocation is not None:
                invocation.end_inputs(step)
            else:
                self.perform(step)

    def perform(self, step: Step) -> None:
        """Act on one step of the session."""
        if type(step) is Send:
            self.keep(step.frame)
        elif type(step) is Open:
            self._open(step)
        elif type(step) is Close:
            self._close(step)
        elif type(step) is Timer:
            return  # the next frame, or the end, has already come and is next
        elif not self.is_open or self.invocation.is_finished:
            return  # the function has returned, or the invocation was refused
        elif type(step) is Feed:
            self.invocation.feed(step)
        elif type(step) is EndInput:
            self.invocation.end_inputs(step)
        elif type(step) is CloseOutput:
            self.invocation.close_output(step.index)
        elif type(step) is Cancel:
            self.break_off(step.error)
        else:
            log.error("a session of one call gave a step that a thread cannot perform, see CallSession: %r", step)
            raise InternalError

    def _open(
        self, step: Open, plan: Plan | None = None, messages: list[Message[bytes]] | None = None
    ) -> Invocation | None:
        driver = self.driver
        try:
            invocation = driver.engine.open(
                step, deadline=self.deadline, is_counted=self._is_counted, is_early=self._is_early,
                plan=plan, messages=messages,
            )  # fmt: skip
        except InvocationError as error:
            driver.refused(step, error)
            self.deliver(Finished(step.id, error))
            return None
        self.invocation = invocation
        invocation.run = Run.THREAD if self.turn is None else self.turn.run
        invocation.peer = getattr(self.outlet, "peer", "")
        self.is_open, self.started_s = True, invocation.started_s
        self.is_timed = self.is_told_of_time or invocation.limit is not None
        invocation.may_be_ended(self.fail if invocation.limit is None else self.stop)
        driver.direct.add(self)
        return invocation

    def _close(self, step: Close) -> None:
        """Close the conversation with the ending of the session; a function that still runs is told to stop."""
        self.closed = self.closed or step
        if self.is_open and not self.invocation.is_finished:
            self.invocation.finish(Cancelled("the conversation is over"))
            self.driver.engine.close(self.invocation)

    # The body.

    def _serve(self) -> None:
        invocation = self.invocation
        if type(invocation) is UnaryInvocation:
            self.call_unary(self._messages)
        elif not (invocation.function.awaits_values and invocation.got_nothing):
            self._serve_streams()
        self._end(None)

    def _serve_streams(self) -> None:
        self.enter()
        inputs = [SyncInput(self, stream) for stream in self.invocation.inputs]
        outputs = self.open(inputs)
        if len(outputs) > 1:
            self.beat()
            Spread(self, inputs, self.driver.threads).run(outputs)
        elif outputs:
            self.drain(0, outputs[0])

    def pull(self, stream: InputStream) -> Any:
        """Take a message of ``stream``; None when it has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        if self.is_timed:
            with self.lock:
                return self._pull(stream)
        return self._pull(stream)

    def _pull(self, stream: InputStream) -> Any:
        if self.is_long or not (stream.queue or stream.is_ended):
            try:
                self.check_gone()
                if not stream.queue and not self._has_ended:
                    self._half_close(self.invocation, heeds_end=self.invocation.heeds_end)
            except InvocationError as error:
                self.break_off(error)
        return stream.take()

    def send_all(self, index: int, values: Iterator[Any]) -> None:
        """Send each value; the end of the only iterator ends the invocation."""
        if self.is_timed:
            super().send_all(index, values)
            return
        invocation = self.invocation
        encode, key, deliver = invocation.encode, invocation.key, self.session.deliver
        for value in values:
            try:
                number, message = encode(index, value)
            except Discarded:
                self.check_over()
                continue
            if invocation.is_finished:
                return
            invocation.emit(number, message)
            for step in deliver(Emitted(key, number, message)):
                if type(step) is Send:
                    self.keep(step.frame)
                else:
                    self.perform(step)

    def put(self, index: int, message: Message[bytes]) -> None:
        """Send what the function sends by its context, or yields although it has a time limit."""
        with self.lock:
            if self.is_timed and self.is_late(time.monotonic()):
                self.break_off(self.limit_error())
            if self.invocation.is_finished:
                raise StopInvocation
            self.invocation.emit(index, message)
            for step in self.session.deliver(Emitted(self.invocation.key, index, message)):
                self.keep(step.frame) if type(step) is Send else self.perform(step)

    def tell_end(self, index: int) -> None:
        """Notify the peer that the function has ended an output by its context."""
        self.deliver(OutputEnded(self.invocation.key, index))

    def deliver(self, event: Event) -> None:
        """Give the session an event, and do the steps that it answers with."""
        for step in self.session.deliver(event):
            self.perform(step)

    # Endings.

    def break_off(self, error: InvocationError) -> None:
        """End the invocation. The peer is notified at once if user code needs time to return (R-075, R-112)."""
        self._end(error)
        if self.is_swept:
            with self.lock:
                self.send_early()

    def _end(self, error: InvocationError | None) -> None:
        """End the invocation, unless it has ended."""
        invocation = self.invocation
        with self.lock:
            if error is None and self.is_long and (self.cut_by is not None or self.outlet.is_gone()):
                error = Cancelled()  # the function may have returned because of the cancel
            if type(error) is Cancelled:
                error = why_gone(error, self.cut_by, self.deadline)
            if not invocation.finish(error):
                return
            self.driver.engine.close(invocation)
            try:
                for step in self.session.deliver(Finished(invocation.key, error)):
                    if type(step) is Close:
                        self.closed = self.closed or step
                    else:
                        self.perform(step)
            except Cancelled as gone:
                log.debug("the peer is gone, so it does not get the last frames: %s", gone)
