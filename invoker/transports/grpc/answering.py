"""`FramesFirst`: a gRPC call on the loop whose frames may be a whole unary call.

Most functions give one value for one message, and most clients send the frames of such a call at once. Then the call
needs neither a `Reactor` nor queues: an async function runs as one task (`UnaryTask`), and a sync one in a thread,
which sends the last batch of the call itself (`ThreadOutlet`). Some clients send all frames in one packet, others in
several that follow each other, so the rest of a call is waited for, if calls of this kind tend to come whole
(`ArrivalStats`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast

from invoker.core.budget import STEP_BYTES
from invoker.core.session import CallSession
from invoker.core.steps import Cancel, Close, Emitted, Event, Finished, Open, Send, Step
from invoker.core.unary import Held, UnaryInvocation
from invoker.errors import InternalError, InvocationError, let_go
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.unary import UnaryTask
from invoker.execution.whole import Whole
from invoker.message import Message
from invoker.transports.grpc.loopcall import LEFT, Listener, LoopCall
from invoker.transports.grpc.queue_poller import QueuePoller
from invoker.transports.grpc.threadoutlet import ThreadOutlet
from invoker.transports.grpc.unarycall import PARK_S, ArrivalStats

log = logging.getLogger(__name__)


class FramesFirst:
    """The listener of a call until it is known whether it is unary; then another listener replaces it.

    Args:
        call: The call.
        session: Translates the frames.
        driver: Runs the function.
        queue_poller: Calls `begin` when all frames of a turn of the loop have come.
        reactor: Makes a `Reactor` for a session, for a call that is not unary.
        stats_of: Gives the statistics of calls of this kind; called if not all frames have come.
        deadline: The deadline on the clock of ``time.monotonic``, or None; enforced by gRPC.
    """

    __slots__ = (
        *("_call", "_deadline", "_driver", "_held", "_is_paused", "_listener", "_queue_poller", "_reactor"),
        *("_session", "_stats", "_stats_of", "_timer"),
    )

    settles = False
    """A unary call does not have to know whether the end of its input is a cancel (R-109)."""

    def __init__(
        self,
        call: LoopCall,
        session: CallSession,
        driver: Driver,
        queue_poller: QueuePoller,
        reactor: Callable[[Any], Reactor],
        stats_of: Callable[[], ArrivalStats],
        deadline: float | None,
    ) -> None:
        self._call = call
        self._session = session
        self._driver = driver
        self._queue_poller = queue_poller
        self._reactor = reactor
        self._deadline = deadline
        self._held: Held | None = None
        self._listener: Listener | None = None
        self._is_paused = False
        self._stats_of = stats_of
        self._stats: ArrivalStats | None = None
        self._timer: asyncio.TimerHandle | None = None
        queue_poller.begin_later(self)

    def arrived(self, frame: bytes | None) -> bool:
        """Take a frame, or the half-close (None); returns whether more frames are wanted now."""
        if self._listener is not None:
            return self._listener.arrived(frame)
        if frame is not None and len(frame) > STEP_BYTES:  # its bytes are counted before it is translated
            return self._give_up().arrived(frame)
        given: Iterable[Step] | None = None
        held = self._held
        try:
            rest = iter(self._session.half_close() if frame is None else self._session.receive(frame))
            for step in rest:
                if not (held.takes(step) if held is not None else self._hold(step)):
                    given = [step, *rest]
                    break
                held = self._held
        except Exception as error:  # noqa: BLE001 - the reactor raises it again, and acts on it
            given = _raising(error)
        if given is not None:
            self._give_up(given, has_ended=frame is None)
            return not self._is_paused
        if self._timer is not None and held is not None and held.has_ended:
            self._queue_poller.begin_later(self)
        return True

    def gone(self) -> None:
        """Note that the peer has left; an invocation that was not opened yet is opened and cancelled."""
        (self._listener or self._give_up()).gone()

    def fail(self, error: InvocationError) -> None:
        """End the call with an error, because a drain is over."""
        self._give_up().fail(error)

    def begin(self) -> None:
        """Begin the unary call, or wait for the rest of it; called when all frames of this turn have come.

        Also called if none has come, so that a drain knows of the call.
        """
        held = self._held
        if self._listener is not None:
            return
        try:
            if (held is None or not held.has_ended) and self._waits():
                return
            is_whole = held is not None and held.has_ended and len(held.messages) == len(held.plan.inputs)
            if self._timer is not None:
                self._wait_no_more(is_whole=is_whole)
            if held is None or not is_whole:
                self._give_up()
            elif held.plan.function.spec.is_async:
                self._run_on_loop(held)
            else:
                self._run_in_thread(held)
        except Exception:
            log.exception("a call failed inside the invoker")
            self._listener = LEFT
            self._call.reply([], Close(InternalError()))

    # Before it is known how the call runs.

    def _hold(self, step: Step) -> bool:
        """Hold back the first step; False if it does not open a unary call.

        A function with a context may send values while it runs, which is done by the `Reactor`.
        """
        engine = self._driver.engine
        if type(step) is not Open or step.is_shared or engine.catalog.renews:
            return False
        try:
            function = engine.catalog.find(step.function)
            if not function.is_unary or function.takes_context:
                return False
            plan = engine.plan(step)
        except InvocationError:
            return False  # the reactor refuses the invocation
        if not plan.is_unary:
            return False
        self._held = Held(plan, step, engine.limits)
        return True

    def _waits(self) -> bool:
        """Wait for the rest of the call for a moment, unless that has been in vain for most calls of this kind."""
        if self._timer is None:
            self._stats = stats = self._stats_of()
            if not stats.pays():
                return False
            self._timer = asyncio.get_running_loop().call_later(PARK_S, self._give_up)
            self._driver.entered(self)
        return True

    def _wait_no_more(self, *, is_whole: bool) -> None:
        assert self._timer is not None
        assert self._stats is not None
        self._timer.cancel()
        self._timer = None
        self._stats.learn(is_whole=is_whole)
        self._driver.exited(self)

    def _give_up(self, steps: Iterable[Step] = (), *, has_ended: bool = False) -> Reactor:
        """Let a `Reactor` continue; it takes the steps that were held back, and then the others."""
        held, self._held = self._held, None
        self._listener = reactor = self._reactor(self._session)
        self._call.listen(reactor)
        reactor.session = _Begun(self._session, [] if held is None else held.steps, steps)
        self._is_paused = not reactor.arrived(b"")
        if has_ended or (held is not None and held.has_ended):
            reactor.arrived(None)
        reactor.session = self._session
        if self._timer is not None:
            self._wait_no_more(is_whole=False)
        return reactor

    # Unary calls.

    def _run_on_loop(self, held: Held) -> None:
        driver, opening, call = self._driver, held.opening, self._call
        self._held = None
        try:
            invocation = driver.engine.open(opening, deadline=self._deadline, plan=held.plan, messages=held.messages)
        except InvocationError as error:
            driver.refused(opening, error)
            self._answer(opening.id, [], None, error.with_traceback(None))
            return
        invocation.peer = call.peer
        frames: list[Any] = []
        task = UnaryTask(
            driver, cast(UnaryInvocation, invocation), held.messages,
            partial(self._answer, opening.id, frames), InternalError, partial(self._emitted, opening.id, frames),
        )  # fmt: skip
        self._listener = task
        call.listen(task)
        call.accepted()
        task.start()

    def _emitted(self, key: str, frames: list[Any], message: Message[bytes]) -> InvocationError | None:
        """Translate the value of the function; returns the error if the session refuses it."""
        refusal: InvocationError | None = None
        try:
            for step in self._session.deliver(Emitted(key, 0, message)):
                if type(step) is Send:
                    frames.append(step.frame)
                elif type(step) is Cancel:
                    refusal = step.error
        except InvocationError:
            raise
        except Exception:
            log.exception("a session failed")
            return InternalError()
        return refusal

    def _answer(self, key: str, frames: list[Any], _: Message[bytes] | None, error: InvocationError | None) -> None:
        """Translate the ending of the invocation, and end the call."""
        closed: Close | None = None
        try:
            for step in self._session.deliver(Finished(key, error)):
                if type(step) is Send:
                    frames.append(step.frame)
                elif type(step) is Close:
                    closed = step
        except Exception:
            log.exception("a session failed")
        closed = closed or Close(InternalError())
        self._call.reply(frames, closed)
        if closed.error is not None:
            let_go(closed.error)

    def _run_in_thread(self, held: Held) -> None:
        driver, call = self._driver, self._call
        outlet = ThreadOutlet(call, self._queue_poller, driver)
        whole = Whole(self._session, driver, outlet, turn=outlet.turn, deadline=self._deadline)
        self._held, self._listener = None, LEFT
        if whole.begin(held):
            try:
                outlet.start(whole)
                return
            except InvocationError as error:  # no thread is free
                whole.break_off(error)
                whole.leave()
        call.reply(whole.sent, whole.closed or Close())


class _Begun:
    """The session of a call whose first steps have already been translated."""

    def __init__(self, session: CallSession, before: Iterable[Step], steps: Iterable[Step]) -> None:
        self._session = session
        self._steps = (before, steps)

    def receive(self, _: bytes) -> Iterator[Step]:
        for steps in self._steps:
            yield from steps

    def deliver(self, event: Event) -> Iterable[Step]:
        return self._session.deliver(event)

    def half_close(self) -> Iterable[Step]:
        return ()


def _raising(error: Exception) -> Iterator[Step]:
    yield from ()
    raise error
