"""`Keeping`: the base of `Whole`: keeps the frames of a short conversation, and sends them once it is long.

Theory. A conversation begins *short*: only its thread refers to it, and its frames are kept in `sent`, which the
transport sends when the thread is done. It is *long* once the first of these is true:

* it has been in user code for a beat of the sweeper, which its `Turn` shows;
* its function was slow in its last calls (`Pace`), or is about to wait for something;
* the kept frames are large.

Then the lead passes to another thread, the kept frames are sent at once, and so is each further frame; while the peer
is slow, the function waits (R-127). From then on the sweeper watches the conversation: it notices a peer that is gone,
a function that ignores its ending, and a function that runs too long. The sweeper ends an invocation that has reached
its `TimeLimit`, although the function still runs. So all code that delivers an event of a long conversation to the
session holds the lock.
"""

from __future__ import annotations

import threading
import time
from _thread import RLock
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, cast

from invoker.context import RUNNING
from invoker.core.steps import Close
from invoker.core.unary import UnaryInvocation
from invoker.errors import Cancelled, Discarded, EncodeError, InvocationError
from invoker.execution.bodies.runner import production_failed
from invoker.execution.bodies.sync import SyncBody, SyncInput
from invoker.execution.bodies.turns import is_of_many
from invoker.execution.driver import Driver
from invoker.execution.outlet import Outlet
from invoker.execution.thread.call_watchdog import CallWatchdog
from invoker.execution.thread.leader_follower import Turn
from invoker.message import Message

_SLOW_AFTER_S = 0.008
"""A function that took longer is expected to do so again: it is entered only after the lead was passed on."""

_SLOW_S = 1.0
"""For how long a function is expected to be slow again."""


class Keeping(SyncBody):
    """A body that runs in the thread that has read all of its input, and that keeps its frames while it is short.

    Args:
        driver: Has the sweeper, and tracks the conversation for a drain.
        outlet: Sends frames to the peer; implemented by the transport.
        turn: The turn of this thread as the leader; None if it does not lead.

    Attributes:
        closed: The `Close` of the session, once the conversation has ended.
        cut_by: The error with which another thread ended the conversation; None: none did.
        is_long: Whether the conversation is long, so that each pull and emit checks whether the peer is gone.
        is_open: Whether an invocation was opened.
        is_swept: Whether the sweeper watches the conversation.
        is_timed: Whether the sweeper may give the session events: that a time limit is over, or that time has passed.
        is_told_of_time: Whether `look` notifies the session that time passes.
        most_bytes: When the kept payloads are larger than this, they are sent with the next one.
        lock: Held while user code's actions change the invocation, and while frames are sent.
        sent: The frames that the session sent and that are not yet sent to the peer.
        started_s: When the function began, on the clock of ``time.monotonic``.
    """

    is_told_of_time: ClassVar[bool] = False
    most_bytes: ClassVar[int] = 64 * 1024

    __slots__ = (
        *("_has_left", "_is_in_stead", "_is_full", "_is_stalled", "_thread", "_watchdog", "closed", "cut_by", "driver"),
        *("is_long", "is_open", "is_swept", "is_timed", "lock", "outlet", "sent", "started_s", "turn"),
    )

    lock: threading.RLock
    started_s: float

    def __init__(self, driver: Driver, outlet: Outlet, turn: Turn | None) -> None:
        self.driver = driver
        self.outlet = outlet
        self.sent: list[Any] = []
        self._thread = 0
        self.lock = RLock()  # `threading.RLock` is a slower Python function that returns this class
        self.failure = None
        self.turn = turn
        self.closed: Close | None = None
        self.cut_by: InvocationError | None = None
        self.is_open = self.is_long = self.is_swept = self._has_left = self._is_full = False
        self.is_timed = self._is_in_stead = self._is_stalled = False
        self._watchdog: CallWatchdog | None = None

    # From other threads.

    def stop(self, error: InvocationError) -> None:
        """End the invocation, which has a time limit, and notify its session.

        Both happen when the sweeper next looks.
        """
        if self.invocation.limit is not None:
            self.invocation.limit.stop(error)

    def fail(self, error: InvocationError) -> None:
        """End the conversation from another thread (the drain is over, or the process holds too much)."""
        self.cut_by = error
        self.is_long = True  # so that the next pull or emit checks
        self.outlet.cut(error)

    def beat(self) -> None:
        """Make the conversation long from now on; called by its thread, or by the sweeper."""
        with self.lock:
            if self.is_swept or self._has_left:
                return
            self._watchdog = CallWatchdog(self.driver)
            self._watchdog.ended_at = time.monotonic()
            self.is_long = self.is_swept = True
            self.driver.sweeper.add(self)
            self.outlet.early(self.sent, self.closed)
        if self.turn is not None:
            self.turn.pass_on()

    def sweep(self, now: float) -> bool:
        """Check whether the peer is gone and whether the function takes too long; see `Sweeper`."""
        watchdog = self._watchdog
        if self._has_left or watchdog is None:
            return False
        watchdog.look(now, self.invocation)
        self._note_slow(now)
        is_late = self.is_timed and self.is_late(now)
        if self.lock.acquire(blocking=False):  # if the lock is taken, the conversation's own thread is sending
            try:
                if is_late:
                    self.in_stead(lambda: self.break_off(self.limit_error()))
                if self.is_told_of_time:
                    self.look(now)
                self.send_early()
            finally:
                self.lock.release()
        elif is_late and self._is_stalled:  # its thread is stuck in a send that began before the limit
            self.fail(self.limit_error())
        else:
            self._is_stalled = is_late
        if self.is_over():
            watchdog.notice_gone(now, self.invocation)
        return True

    def is_late(self, now: float) -> bool:
        """Whether there is an invocation that has not ended although its time limit has passed."""
        invocation = self.invocation
        return invocation.limit is not None and now >= invocation.limit.ends_at and not invocation.is_finished

    def limit_error(self) -> InvocationError:
        """The error with which the invocation ends when its time is over."""
        assert self.invocation.limit is not None
        return self.invocation.limit.error

    def look(self, now: float) -> None:
        """Notify the session that time has passed, if a timer is due; called with the lock held."""

    def in_stead(self, tell: Callable[[], object]) -> None:
        """Notify the session in place of a function that does not return; called with the lock held."""
        self._is_in_stead = True
        try:
            tell()
        finally:
            self._is_in_stead = False

    def send_early(self) -> None:
        """Send the kept frames, as far as that is possible without waiting; called with the lock held."""
        if not self._has_left and (self.sent or self.closed is not None):
            self.outlet.early(self.sent, self.closed)

    def is_slow(self, took_s: float) -> bool:
        """Whether a function that took ``took_s`` seconds counts as slow.

        Its next run may take as long, and send little during that time.
        """
        return took_s > _SLOW_AFTER_S

    def _note_slow(self, now: float) -> None:
        if self.is_slow(now - self.started_s):
            self.driver.pace(self.invocation.function).slow_until = now + _SLOW_S

    # These methods are for the thread of the conversation.

    def enter(self) -> None:
        """Note that user code is about to run: the invocation is watched if it takes longer than a beat."""
        invocation, turn = self.invocation, self.turn
        self._thread = threading.get_ident()
        invocation.context.bind(self)
        slow_until = self.driver.pace(invocation.function).slow_until
        if turn is None or (slow_until and slow_until > time.monotonic()):
            self.beat()
        else:
            turn.begin(self)

    def call_unary(self, messages: list[Message[bytes]]) -> None:
        """Call the function of a unary invocation, and `put` its value."""
        invocation = cast(UnaryInvocation, self.invocation)
        function, context = invocation.function, invocation.context
        RUNNING.set(context)
        try:
            decoders = invocation.decoders(messages)
        except InvocationError as error:
            self.raised(error, production_failed)
            return
        self.enter()
        began_ns = time.thread_time_ns()
        try:
            values = []
            for decode, message in zip(decoders, messages, strict=True):
                values.append(decode(message))
            messages.clear()  # the function needs only the values, so the messages can be released
            inputs = [SyncInput(self, one) for one in invocation.inputs] if function.takes_context else ()
            value = function.once(values, inputs, context)
            if is_of_many(value):
                made = self.driver.threads.turns.encode(invocation.encode, 0, value)
            else:
                made = invocation.encode(0, value)
            invocation.cpu_ns = time.thread_time_ns() - began_ns
            self.put(*made)
        except Discarded:
            invocation.cpu_ns = time.thread_time_ns() - began_ns
            self.is_over()  # this notices a peer that is gone
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            invocation.cpu_ns = time.thread_time_ns() - began_ns
            self.raised(error, production_failed)

    def end(self, index: int) -> None:
        """End an output before the function returns."""
        self.check_thread()
        super().end(index)

    def check_thread(self) -> None:
        """Raise EncodeError in every thread but the one that runs the function."""
        if threading.get_ident() != self._thread:
            raise EncodeError("this function may send only from the thread that runs it")

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""
        if self.cut_by is None and not self.invocation.is_finished and not self.outlet.is_gone():
            return False
        self.is_long = True  # so that the next pull, the next emit and the end check whether the peer is gone
        return True

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self.driver.settings.debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, or the peer is gone (R-034, R-115)."""
        self.beat()
        assert self._watchdog is not None
        return self._watchdog.wait(awaitable)

    def keep(self, frame: Any) -> None:
        """Keep one frame, or, if the conversation is long, send it after the kept ones."""
        if self._is_full and not self.is_swept:
            self.beat()
        if self.is_long:
            if self._is_in_stead:
                # the frame is sent as soon as that is possible without waiting, see `send_early`
                self.sent.append(frame)
                return
            self.check_gone()
        # Append, then check; `beat` does the reverse, so one of the two sends it.
        self.sent.append(frame)
        if self.is_long:
            with self.lock:
                self.outlet.early(self.sent, may_wait=True)
        elif self.is_open and self.invocation.bytes_out > self.most_bytes:
            self._is_full = True

    def check_gone(self) -> None:
        """Raise Cancelled if the conversation is long and the peer is gone."""
        if self.is_long and (self.cut_by is not None or self.outlet.is_gone()):
            raise Cancelled

    def leave(self) -> None:
        """Note that user code has returned, so only this thread handles the conversation from now on."""
        if self.turn is not None:
            self.turn.busy = None
        with self.lock:  # the sweeper may be sending the kept frames
            self._has_left = True
        if not self.is_open:
            return
        self.invocation.context.release()  # the context may outlive the invocation, so it must not refer to it
        if self.invocation.has_place:
            self.driver.engine.left(self.invocation)
        if self._watchdog is not None:
            self._note_slow(time.monotonic())
            self._watchdog.left()
        self.driver.exited_direct(self)
