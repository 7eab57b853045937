"""`Whole`: a conversation whose frames are all here before its function runs, in the thread that has them.

Theory. Nothing comes any more, so nothing waits for input: the session translates all frames first, then the function
runs, and what the session sends is kept in `sent`. The transport sends that together with the ending, once `run` has
returned. There is no queue and no turn at a gate, and the sweeper does not know the conversation. That is so while the
conversation is *short*. It is *long* once the first of these is true:

* it has been in user code for a beat of the sweeper, which its `Turn` tells;
* its function has lately been slow (`Pace`), or is about to wait for something;
* what it keeps is large.

Then the lead passes to another thread, what is kept leaves at once, and so does each further frame; while the peer is
slow, the function waits (R-127). From then on the sweeper looks after the conversation: for a peer that is gone, for a
function that is deaf, for one that goes on for too long.

Most functions run in this thread to their end. Of one that gives several iterators, each gets a thread of its own, as
each may block on something of the author's.
"""

from __future__ import annotations

import logging
import threading
import time
from _thread import RLock
from collections.abc import Awaitable, Iterable, Iterator
from contextvars import copy_context
from typing import Any

from invoker.core.invocation import Invocation
from invoker.core.session import CallSession
from invoker.core.steps import (
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
from invoker.drive.bodies.spread import Spread
from invoker.drive.bodies.sync import SyncBody, SyncInput
from invoker.drive.driver import Driver
from invoker.drive.outlet import Outlet
from invoker.drive.thread.leaders import Turn
from invoker.drive.thread.overdue import Overdue, why_gone
from invoker.errors import (
    Cancelled,
    Discarded,
    EncodeError,
    InternalError,
    InvocationError,
)
from invoker.message import Message

__all__ = ["Whole"]

log = logging.getLogger(__name__)

_MOST_BYTES = 64 * 1024
"""When the payloads that are kept are larger than this, the next one leaves at once, and they do as well."""

_SLOW_AFTER_S = 0.008
"""A function that took longer is expected to do so again: it is entered only after the lead was passed on."""

_SLOW_S = 1.0
"""For how long that is expected."""


class Whole(SyncBody):
    """One session with the one invocation that it opens, and the body of that; see the module.

    Args:
        session: Translates.
        driver: Knows the engine and what is being drained.
        outlet: Of the transport.
        turn: Of the thread, if it leads; without one the conversation is long from the beginning.
        deadline: On the clock of ``time.monotonic``, or None.
        is_counted: Whether unread input counts against the memory of the process; else the caller counts it.
        is_early: The conversation began before the drain, which therefore does not refuse what it opens (G-104).

    Attributes:
        sent: What the session sent and has not left yet.
        is_long: See the module.
        lock: Held while the invocation is changed by what user code did, and while frames leave.
    """

    __slots__ = (
        *("_closed", "_cut", "_has_ended", "_has_left", "_is_counted", "_is_early", "_is_full", "_is_open"),
        *("_is_swept", "_overdue", "_started_s", "_thread", "_turn"),
        *("deadline", "driver", "is_long", "lock", "outlet", "sent", "session"),
    )

    lock: threading.RLock

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
        self.session = session
        self.driver = driver
        self.outlet = outlet
        self.deadline = deadline
        self.sent: list[Any] = []
        self.lock = RLock()  # of C; `threading.RLock` is a function that looks for it
        self.failure = None
        self.is_long = False
        self._turn = turn
        self._thread = threading.get_ident()
        self._is_counted = is_counted
        self._is_early = is_early
        self._closed: Close | None = None
        self._cut: InvocationError | None = None
        self._overdue: Overdue | None = None
        self._is_open = self._has_ended = self._has_left = self._is_full = self._is_swept = False

    def run(self, frames: Iterable[Any]) -> Close:
        """Run the conversation to its end, in this thread.

        Args:
            frames: All that the peer has sent, before it half-closed.

        Returns:
            How it ended. What it sent besides is in `sent`, unless it has left.
        """
        try:
            self._receive(frames)
            if self._is_open and not self.invocation.is_finished:
                copy_context().run(self._serve)  # the thread may serve other calls later
        except Exception:
            log.exception("a session or transport failed")
            self._closed = Close(InternalError())
            if self._is_open and self.invocation.finish(InternalError()):
                self.driver.engine.close(self.invocation)
        finally:
            self._leave()
        return self._closed or Close()

    def fail(self, error: InvocationError) -> None:
        """End the conversation from another thread (the drain is over, or the process holds too much)."""
        self._cut = error
        self.is_long = True  # so that the next pull or emit looks
        self.outlet.cut(error)

    # What the peer has sent.

    def _receive(self, frames: Iterable[Any]) -> None:
        """Translate all frames, and their end unless a function is to see that for itself."""
        receive, may_begin = self.session.receive, False
        invocation: Invocation | None = None
        try:
            for frame in frames:
                for step in receive(frame):
                    if type(step) is Feed and invocation is not None:
                        invocation.feed(step)
                    elif type(step) is Open:
                        invocation = self._open(step)
                    else:
                        self._perform(step)
                if self._closed is not None:
                    return
                if not may_begin and invocation is not None:
                    may_begin = not invocation.function.awaits_values or invocation.may_begin()
            if not may_begin or invocation is None or not invocation.heeds_end:
                self._half_close(invocation)
                if not may_begin and invocation is not None:
                    invocation.may_begin()
        except InvocationError as error:
            if not self._is_open:
                self._closed = Close(error)
            else:
                self.break_off(error)

    def _half_close(self, invocation: Invocation | None) -> None:
        """Translate the end of the frames, once it is certain."""
        if invocation is not None and invocation.heeds_end:
            if self.outlet.settle_s:
                self.beat()
            self.outlet.await_end()
            self._started_s = time.monotonic()
        self._has_ended = True
        for step in self.session.half_close():
            if type(step) is EndInput and invocation is not None:
                invocation.end_inputs(step)
            else:
                self._perform(step)

    def _perform(self, step: Step) -> None:
        """Act on one step of the session."""
        if type(step) is Send:
            self._send(step.frame)
        elif type(step) is Open:
            self._open(step)
        elif type(step) is Close:
            self._close(step)
        elif type(step) is Timer:
            return  # the next frame, or the end, is here already and comes next
        elif not self._is_open or self.invocation.is_finished:
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
            log.error("a session of one call gave a step that no thread can do, see CallSession: %r", step)
            raise InternalError

    def _open(self, step: Open) -> Invocation | None:
        driver = self.driver
        try:
            invocation = driver.engine.open(
                step, deadline=self.deadline, is_counted=self._is_counted, is_early=self._is_early
            )
        except InvocationError as error:
            driver.refused(step, error)
            self._deliver(Finished(step.id, error))
            return None
        self.invocation = invocation
        self._is_open = True
        self._started_s = invocation.started_s
        invocation.may_be_ended(self.fail)
        driver.entered_direct(self)
        return invocation

    def _close(self, step: Close) -> None:
        """Close the conversation as the session says; a function that still runs is told to leave."""
        self._closed = self._closed or step
        if self._is_open and not self.invocation.is_finished:
            self.invocation.finish(Cancelled("the conversation is over"))
            self.driver.engine.close(self.invocation)

    # The body.

    def _serve(self) -> None:
        invocation, turn = self.invocation, self._turn
        if invocation.function.awaits_values and invocation.got_nothing:
            self._end(None)
            return
        invocation.context.bind(self)
        slow_until = self.driver.pace(invocation.function).slow_until
        if turn is None or (slow_until and slow_until > time.monotonic()):
            self.beat()
        else:
            turn.begin(self)
        inputs = [SyncInput(self, stream) for stream in invocation.inputs]
        outputs = self.open(inputs)
        if len(outputs) > 1:
            self.beat()
            Spread(self, inputs, self.driver.threads).run(outputs)
        elif outputs:
            self.drain(0, outputs[0])
        self._end(None)

    def pull(self, stream: InputStream) -> Any:
        """Take a message of ``stream``; None when it has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        if self.is_long or not (stream.queue or stream.is_ended):
            try:
                self._check_gone()
                if not stream.queue and not self._has_ended:
                    self._half_close(self.invocation)
            except InvocationError as error:
                self.break_off(error)
        return stream.take()

    def send_all(self, index: int, values: Iterator[Any]) -> None:
        """Send each value; the end of the only iterator is that of the invocation."""
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
                    self._send(step.frame)
                else:
                    self._perform(step)

    def put(self, index: int, message: Message[bytes]) -> None:
        """Send what the function sends by its context."""
        self.invocation.emit(index, message)
        self._deliver(Emitted(self.invocation.key, index, message))

    def tell_end(self, index: int) -> None:
        """Tell the peer that the function has ended an output by its context."""
        self._deliver(OutputEnded(self.invocation.key, index))

    def end(self, index: int) -> None:
        """End an output before the function returns."""
        self.check_thread()
        super().end(index)

    def check_thread(self) -> None:
        """Raise EncodeError in every thread but the one that runs the function."""
        if threading.get_ident() != self._thread:
            raise EncodeError("this function sends from the thread that runs it only; its wire has no other")

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""
        if self._cut is None and not self.invocation.is_finished and not self.outlet.is_gone():
            return False
        self.is_long = True  # so that the next pull or emit looks, and so does the end
        return True

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self.driver.settings.debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, or the peer is gone (R-034, R-115)."""
        self.beat()
        assert self._overdue is not None
        return self._overdue.wait(awaitable)

    # What leaves.

    def _send(self, frame: Any) -> None:
        """Keep one frame, or send it behind those that are kept if the conversation is long."""
        if self._is_full and not self._is_swept:
            self.beat()
        if self.is_long:
            self._check_gone()
        # Append, then look; `beat` does the reverse, so one of the two sends it.
        self.sent.append(frame)
        if self.is_long:
            with self.lock:
                self.outlet.early(self.sent, may_wait=True)
        elif self._is_open and self.invocation.bytes_out > _MOST_BYTES:
            self._is_full = True

    def _check_gone(self) -> None:
        """Raise Cancelled if the conversation is long and the peer is gone."""
        if self.is_long and (self._cut is not None or self.outlet.is_gone()):
            raise Cancelled("the peer cancelled, or is gone")

    def _deliver(self, event: Event) -> None:
        for step in self.session.deliver(event):
            self._perform(step)

    # Endings.

    def break_off(self, error: InvocationError) -> None:
        """End the invocation. The peer is told at once if user code takes its time to leave (R-075, R-112)."""
        self._end(error)
        if self._is_swept:
            with self.lock:
                self._send_early()

    def _end(self, error: InvocationError | None) -> None:
        """End the invocation, unless it has ended."""
        invocation = self.invocation
        if error is None and self.is_long and (self._cut is not None or self.outlet.is_gone()):
            error = Cancelled("the peer cancelled, or is gone")  # the function may have returned because of that
        if type(error) is Cancelled:
            error = why_gone(error, self._cut, self.deadline)
        if invocation.finish(error):
            self.driver.engine.close(invocation)
            try:
                for step in self.session.deliver(Finished(invocation.key, error)):
                    if type(step) is Close:
                        self._closed = self._closed or step
                    else:
                        self._perform(step)
            except Cancelled as gone:
                log.debug("the peer is gone, so it does not get the last frames: %s", gone)

    def _leave(self) -> None:
        """User code has been left: nobody else looks after the conversation any more."""
        if self._turn is not None:
            self._turn.busy = None
        with self.lock:  # the sweeper may be sending what was kept
            self._has_left = True
        if not self._is_open:
            return
        self.invocation.context.release()  # the context may outlive the invocation, so it lets go of it
        if self._overdue is not None:
            self._note_slow(time.monotonic())
            self._overdue.left()
        self.driver.exited_direct(self)

    # What becomes of a conversation that is long.

    def beat(self) -> None:
        """From now on the conversation is long; called by its thread, or by the sweeper."""
        with self.lock:
            if self._is_swept or self._has_left:
                return
            self._overdue = Overdue(self.driver)
            self._overdue.ended_at = time.monotonic()
            self.is_long = self._is_swept = True
            self.driver.sweeper.add(self)
            self.outlet.early(self.sent, self._closed)
        if self._turn is not None:
            self._turn.pass_on()

    def sweep(self, now: float) -> bool:
        """Notice that the peer is gone while user code is busy, and what takes too long; see `Sweeper`."""
        overdue = self._overdue
        if self._has_left or overdue is None:
            return False
        overdue.look(now, self.invocation)
        self._note_slow(now)
        if self.lock.acquire(blocking=False):  # otherwise its thread is sending just now
            try:
                self._send_early()
            finally:
                self.lock.release()
        if self.is_over():
            overdue.notice_gone(now, self.invocation)
        return True

    def _send_early(self) -> None:
        """Send what is kept, as far as that need not wait; called with the lock held."""
        if not self._has_left and (self.sent or self._closed is not None):
            self.outlet.early(self.sent, self._closed)

    def _note_slow(self, now: float) -> None:
        if now - self._started_s > _SLOW_AFTER_S:
            self.driver.pace(self.invocation.function).slow_until = now + _SLOW_S
