"""`DirectConversation`: runs a sync function in the very thread that reads and writes its wire stream.

Nothing passes between threads: pulling an input reads the next frame, emitting writes one (`Single`). The thread owns
the session and the invocation, so neither needs a lock, and user code that blocks delays no other call. A function with
several output iterators gets a thread for each, since each may block on an input of its own; these threads take turns
under the wire's lock (`Several`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Iterable
from contextvars import copy_context
from typing import Any

from invoker.core.invocation import Invocation
from invoker.core.limits import TimeLimit
from invoker.core.session import CallSession
from invoker.core.steps import (
    Ask,
    CallStep,
    Cancel,
    Close,
    CloseOutput,
    Elapsed,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    Send,
    Step,
    Timer,
)
from invoker.errors import Cancelled, InternalError, InvocationError
from invoker.execution.bodies.sync import SyncInput
from invoker.execution.driver import Driver
from invoker.execution.loop.request import carry_on
from invoker.execution.placement import Run
from invoker.execution.thread.call_watchdog import CallWatchdog, why_gone
from invoker.execution.thread.lookahead import LookaheadValidator
from invoker.execution.thread.loop_handoff import LoopHandoff
from invoker.execution.thread.several import Several
from invoker.execution.thread.single import Single
from invoker.execution.thread.timed import TimedSingle
from invoker.execution.thread.wire import Wire

log = logging.getLogger(__name__)


class DirectConversation:
    """One session on one wire, with the one invocation that it opens.

    Args:
        session: Translates the frames.
        wire: Carries the frames; its methods block.
        driver: Has the engine and the threads, and tracks the conversation for a drain.
        deadline: The deadline on the clock of ``time.monotonic``, or None.

    Attributes:
        turns: Notified of every event of the wire, once several threads share it.
    """

    __slots__ = (
        *("_closed", "_cut", "_due", "_lookahead", "_guard", "_is_ending", "_is_over", "_is_stalled", "_watchdog"),
        *("deadline", "driver", "invocation", "session", "turns", "wire"),
    )

    def __init__(self, session: CallSession, wire: Wire, driver: Driver, *, deadline: float | None = None) -> None:
        self.session = session
        self.wire = wire
        self.driver = driver
        self.deadline = deadline
        self.invocation: Invocation | None = None
        self._closed: Close | None = None
        self._cut: InvocationError | None = None
        self.turns: threading.Condition | None = None
        self._due: list[Any] = []  # frames that wait for room, of several threads or of the sweeper
        self._guard: Any = None  # for a body with a time limit: held while the session gets an event
        self._is_ending = self._is_stalled = False
        self._watchdog = CallWatchdog(driver)
        self._lookahead: LookaheadValidator | None = None  # only the sweeper makes and uses it
        self._is_over = False

    def run(self) -> Close:
        """Run to the end, in this thread; returns the ending to send to the peer."""
        self.driver.sweeper.add(self)
        try:
            return self._run()
        except Exception:
            log.exception("a session or wire failed")
            return Close(InternalError())
        finally:
            if self.invocation is not None:  # the context may outlive the invocation, so it must not refer to it
                self.invocation.context.release()
                if self.invocation.has_place:
                    self.driver.engine.left(self.invocation)
            self._is_over = True
            self._watchdog.left()

    def _run(self) -> Close:
        try:
            while self.invocation is None and self._closed is None:
                self._receive()
        except InvocationError as error:
            ending = self._ending(error)
            return self._closed or Close(ending)  # the session may have set its ending, with trailers
        invocation = self.invocation
        if invocation is not None and not invocation.is_finished and self._may_serve(invocation):
            copy_context().run(self._serve, invocation)  # the thread may serve other calls later
            if self._due and self.turns is None:
                self._write_due()
        return self._closed or Close(None if invocation is None else invocation.error)

    def stop(self, error: InvocationError) -> None:
        """End the invocation, which has a time limit, and notify its session, when the sweeper next looks."""
        if self.invocation is not None and self.invocation.limit is not None:
            self.invocation.limit.stop(error)

    def fail(self, error: InvocationError) -> None:
        """End the conversation from another thread (the drain is over, or the process holds too much)."""
        self._cut = error
        self.wire.cut(int(error.status), str(error))

    # What the peer sends.

    def _receive(self) -> None:
        """Wait for one frame and apply it."""
        frame = self.wire.read()
        steps = self.half_closed() if frame is None else self.session.receive(frame)
        for step in steps:
            if type(step) is Ask:
                self._hand_over(steps)
                return
            self.perform(step)

    def _hand_over(self, steps: Iterable[CallStep]) -> None:
        """Hand the conversation over to the loop until its end, because the session asks the store."""
        frames: list[Any] = []
        rest = carry_on(self.session, steps, self.driver, frames.append, deadline=self.deadline)
        self._closed = LoopHandoff(self.driver, self.wire.look).run(rest)
        for one in frames:
            self._write(one)

    def half_closed(self) -> Iterable[CallStep]:
        """The steps of the end of the peer's frames."""
        self._watchdog.ended_at = time.monotonic()
        return self.session.half_close()

    def perform(self, step: Step) -> None:
        """Act on one step of the session; called with the lock held where several threads share the wire."""
        invocation = self.invocation
        if type(step) is Send:
            self._write(step.frame)
        elif type(step) is Open:
            self._open(step)
        elif type(step) is Close:
            self._close(step)
        elif type(step) is Timer:
            self._await_more(step.delay_s)
        elif invocation is None or invocation.is_finished:
            return  # the function has returned, or the invocation was refused
        elif type(step) is Feed:
            invocation.feed(step)
        elif type(step) is EndInput:
            invocation.end_inputs(step)
        elif type(step) is CloseOutput:
            invocation.close_output(step.index)
        elif type(step) is Cancel:
            self.break_off(step.error)
        else:
            log.error("a session of one call gave a step that a thread cannot perform, see CallSession: %r", step)
            raise InternalError

    def _write(self, frame: Any) -> None:
        """Send one frame after the frames that already wait for room."""
        if self._is_ending:
            self._due.append(frame)
            return
        if self.turns is None:
            self.wire.write(frame, hold=False)
            return
        self._due.append(frame)
        while self._due:
            self.wire.await_room()
            if self._due:  # otherwise another thread has sent the frame meanwhile
                self.wire.put(self._due.pop(0))

    def _close(self, step: Close) -> None:
        """Close the conversation with the ending of the session; a function that still runs is told to stop."""
        self._closed = step
        invocation = self.invocation
        if invocation is not None and not invocation.is_finished:
            invocation.finish(Cancelled("the conversation is over"))
            self.driver.engine.close(invocation)
            self._tell(step)

    def _await_more(self, delay_s: float) -> None:
        """Wait for the next frame, and notify the session if none comes. The thread holds no slot meanwhile (R-170)."""
        driver, is_here = self.driver, False
        if driver.may_wait(self):
            driver.threads.leave()
            try:
                is_here = self.wire.await_frame(delay_s)
            finally:
                driver.threads.come_back()
                driver.waiting.discard(self)
        if not is_here:
            self.deliver(Elapsed())

    def _open(self, step: Open) -> None:
        try:
            invocation = self.driver.engine.open(step, deadline=self.deadline)
        except InvocationError as error:
            self.driver.refused(step, error)
            self.deliver(Finished(step.id, error))
            return
        self.invocation = invocation
        invocation.run = Run.THREAD
        invocation.peer = getattr(self.wire, "peer", "")
        invocation.may_be_ended(self.fail if invocation.limit is None else self.stop)
        self.wire.pace = self.driver.pace(invocation.function)
        self.wire.accepted()

    # The body.

    def _may_serve(self, invocation: Invocation) -> bool:
        """Receive until the body may be opened, and return whether it still needs to be opened."""
        try:
            while not invocation.is_finished and not invocation.may_begin():
                self.wire.settles = invocation.heeds_end
                patience_s = invocation.patience_s
                if patience_s is not None and not self.wire.await_frame(patience_s):
                    invocation.is_settled = True
                else:
                    self._receive()
        except InvocationError as error:
            self.break_off(error)
            return False
        if invocation.is_finished:
            return False
        if invocation.got_nothing:
            self.finish(None)
            return False
        self.wire.settles = invocation.heeds_end
        return True

    def _serve(self, invocation: Invocation) -> None:
        body = Single(self, invocation) if invocation.limit is None else TimedSingle(self, invocation)
        invocation.context.bind(body)
        if invocation.limit is not None:
            self._guard = body.lock
        inputs = [SyncInput(body, stream) for stream in invocation.inputs]
        outputs = body.open(inputs)
        if len(outputs) > 1:
            Several(body, inputs, self.driver.threads).run(outputs)
            return
        if outputs:
            body.drain(0, outputs[0])
        with body.lock:
            self.finish(None)

    # Endings.

    def break_off(self, error: InvocationError) -> None:
        """End the invocation and notify the peer at once, since user code may need time to return (R-075, R-112)."""
        ending = self.finish(error)
        if ending is not None:
            self._tell(self._closed or Close(ending))

    def _send_status(self, close: Close) -> None:
        code, detail = (0, "") if close.error is None else (int(close.error.status), str(close.error))
        self.wire.send_status(code, detail, close.trailers)
        if self.turns is not None:
            self.turns.notify_all()

    def _tell(self, close: Close) -> None:
        if self._is_ending:
            return  # the status is sent after the frames that are due
        code, detail = (0, "") if close.error is None else (int(close.error.status), str(close.error))
        if self.turns is not None:
            self._send_status(close)
        elif not self.wire.is_gone:
            self.wire.finish(code, detail, close.trailers)

    def finish(self, error: InvocationError | None) -> InvocationError | None:
        """End the invocation, unless it has ended; gives the error of the ending that counts."""
        invocation = self.invocation
        assert invocation is not None
        if error is None and self.wire.is_gone:
            error = Cancelled()  # the function may have returned because of the cancel
        if type(error) is Cancelled:
            error = why_gone(error, self._cut, self.deadline)
        if invocation.finish(error):
            self.driver.engine.close(invocation)
            try:
                self.deliver(Finished(invocation.key, error))
            except Cancelled as gone:
                log.debug("the peer is gone, so it does not get the last frames: %s", gone)
        return invocation.error

    def _ending(self, error: InvocationError) -> InvocationError:
        """End the invocation, if there is one, and find the error with which the conversation ends."""
        if self.invocation is not None:
            self.finish(error)
        return why_gone(error, self._cut, self.deadline) if type(error) is Cancelled else error

    def deliver(self, event: Event) -> None:
        """Give the session an event, and do its steps; the same lock as for `perform` is held."""
        for step in self.session.deliver(event):
            self.perform(step)

    # The methods that other threads call while the function runs.

    def sweep(self, now: float) -> bool:
        """Check whether the peer is gone, and whether busy user code takes too long; see `Sweeper`."""
        wire = self.wire
        if self._is_over:
            return False
        self._watchdog.look(now, self.invocation)
        if self.invocation is not None and self.invocation.limit is not None:
            self._look_at_limit(now, self.invocation, self.invocation.limit)
        is_ended = self.invocation is not None and self.invocation.is_finished
        if not wire.is_idle:
            if wire.look() or is_ended:
                self._watchdog.notice_gone(now, self.invocation)
            elif self.invocation is not None:
                self._lookahead = self._lookahead or LookaheadValidator()
                wrong = self._lookahead.look(wire, self.session, self.invocation)
                if wrong is not None:
                    self._cut = self._cut or wrong
                    wire.refuse(int(wrong.status), str(wrong))
        return True

    def _look_at_limit(self, now: float, invocation: Invocation, limit: TimeLimit) -> None:
        """End an invocation that has reached its time limit instead of its function; called by the sweeper."""
        is_late = now >= limit.ends_at and not invocation.is_finished
        guard = self.turns or self._guard
        if not is_late and not self._due:
            return
        if guard is None:  # the function waits for its inputs, or has not begun
            self.fail(limit.error)
        elif guard.acquire(blocking=False):
            try:
                self._is_ending = True
                if is_late and not invocation.is_finished:
                    self.finish(limit.error)
                self._send_due(invocation)
            finally:
                self._is_ending = False
                guard.release()
        elif is_late and self._is_stalled:  # its thread is stuck in a send that began before the limit
            self.fail(limit.error)
        else:
            self._is_stalled = is_late

    def _send_due(self, invocation: Invocation) -> None:
        """Send the waiting frames and then the status, as far as that is possible without waiting.

        The guard is held.
        """
        if self.turns is not None:  # here the guard is the lock of the wire
            self._send_late(invocation)
        else:
            with self.wire.lock:
                self._send_late(invocation)

    def _send_late(self, invocation: Invocation) -> None:
        wire = self.wire
        while self._due and wire.send_now(self._due[0]):
            del self._due[0]
        if not self._due and invocation.is_finished:
            self._send_status(self._closed or Close(invocation.error))
            wire.is_gone = True  # so that a thread which waits for a frame stops waiting

    def _write_due(self) -> None:
        """Send the frames that the sweeper could not send, in the function's thread after user code has returned."""
        try:
            with self._guard:  # so that the sweeper does not send them as well
                while self._due:
                    self.wire.write(self._due.pop(0), hold=False)
        except Cancelled as gone:
            log.debug("the peer is gone, so it does not get the last frames: %s", gone)

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self.driver.settings.debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block the calling thread until the loop has run ``awaitable``, or the peer is gone (R-034, R-115)."""
        return self._watchdog.wait(awaitable)

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""
        invocation = self.invocation
        return self.wire.is_gone or invocation is None or invocation.is_finished or self.wire.look()
