"""`DirectConversation`: runs a sync function in the very thread that reads and writes its wire stream.

There is no hop: pulling an input reads the next frame, emitting writes one. The thread owns the session and the
invocation, so neither needs a lock, and user code that blocks stalls nobody else. A function with several output
iterators gets a thread for each, since each may block on an input of its own; those take turns under the line's lock
(`SharedConversation`).

Frames are *held* for the next pull (see `Line`) when that is sure to follow: after each result of a request/reply
function, and after those of a generator that has come back at once the last time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from invoker.author.spec import Style
from invoker.context import RUNNING
from invoker.core.invocation import Invocation
from invoker.core.session import Session
from invoker.core.steps import Close, Elapsed, Emitted, EndInput, Feed, Finished, Open, Send, Step, Timer
from invoker.core.streams import InputStream
from invoker.drive.bodies.awaiting import Awaiting
from invoker.drive.bodies.runner import call_failed, comes_of, production_failed
from invoker.drive.driver import Driver
from invoker.drive.thread.foresight import Foresight
from invoker.drive.thread.inputs import DirectInput
from invoker.drive.thread.outlet import DirectOutlet
from invoker.drive.thread.several import Several
from invoker.drive.thread.wire import Wire
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    Discarded,
    InputCancelled,
    InternalError,
    InvocationError,
    StopInvocation,
)

__all__ = ["DirectConversation"]

log = logging.getLogger(__name__)

_PROMPT_S = 200e-6
"""A generator that came back within this time after an output is expected to do so again."""

_EARLY_S = 0.01
"""How much earlier than our own clock says a deadline may be enforced by the transport."""


class DirectConversation:
    """One session on one wire, with the one invocation that it opens.

    Args:
        session: Translates.
        wire: Carries; blocking.
        driver: Knows the engine, the threads and what is being drained.
        deadline: On the clock of ``time.monotonic``, or None.
    """

    def __init__(self, session: Session, wire: Wire, driver: Driver, *, deadline: float | None = None) -> None:
        self.session = session
        self.wire = wire
        self.driver = driver
        self.deadline = deadline
        self.invocation: Invocation | None = None
        self._closed: Close | None = None
        self._cut: InvocationError | None = None
        self._awaiting = Awaiting(driver.loop)
        self.wait = self._awaiting.wait
        self._is_prompt = False  # whether the generator came back at once after its last output
        self._wrote_at = 0.0  # when it was given that output; 0 once it has pulled since
        self._ended_at = 0.0
        self._gone_at = 0.0
        self._foresight = Foresight()
        self._is_stuck = False
        self._is_over = False

    def run(self) -> Close:
        """Run to the end, in this thread; returns what to tell the peer of it."""
        self.driver.sweeper.add(self)
        try:
            return self._run()
        except Exception:
            log.exception("a session or wire failed")
            return Close(InternalError())
        finally:
            RUNNING.set(None)
            if self.invocation is not None:  # the context may outlive the invocation, which nothing needs to know then
                self.invocation.context.release()
            with self.wire.lock:
                self._is_over = True
                if self._is_stuck:
                    self.driver.threads.stuck -= 1

    def _run(self) -> Close:
        try:
            while self.invocation is None and self._closed is None:
                self._receive()
        except InvocationError as error:
            return Close(self._ending(error))
        invocation = self.invocation
        if invocation is not None and not invocation.is_finished and self._may_serve(invocation):
            self._serve(invocation)
        return self._closed or Close()

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
            self.perform(step)

    def half_closed(self) -> Iterable[Step]:
        """The steps of the end of the peer's frames."""
        self._ended_at = time.monotonic()
        return self.session.half_close()

    def perform(self, step: Step) -> None:
        """Act on one step of the session."""
        kind, invocation = type(step), self.invocation
        if kind is Feed:
            if invocation is not None:
                invocation.feed(step)  # type: ignore[arg-type]
        elif kind is EndInput:
            if invocation is not None:
                invocation.end_inputs(step)  # type: ignore[arg-type]
        elif kind is Close:
            self._closed = step  # type: ignore[assignment]
        elif kind is Open:
            self._open(step)  # type: ignore[arg-type]
        elif kind is Send:
            self.wire.write(step.frame, hold=False)  # type: ignore[union-attr]
        elif kind is Timer:
            self._await_more(step.delay_s)  # type: ignore[union-attr]
        else:
            raise AssertionError(f"a session of one invocation has no {kind.__name__}")

    def _await_more(self, delay_s: float) -> None:
        """Wait for a frame, which the session gets next, or let it know that none has come; holds no slot (R-170)."""
        driver, is_here = self.driver, False
        if driver.may_wait(self):
            driver.threads.leave()
            try:
                is_here = self.wire.await_frame(delay_s)
            finally:
                driver.threads.come_back()
                driver.waiting.discard(self)
        if not is_here:
            self._deliver(Elapsed())

    def _open(self, step: Open) -> None:
        try:
            invocation = self.driver.engine.open(step, deadline=self.deadline)
        except InvocationError as error:
            log.info(
                "invocation refused",
                extra={"function": step.function, "status": error.status.name, "detail": str(error)},
            )
            self._deliver(Finished(step.id, error))
            return
        self.invocation = invocation
        invocation.may_be_ended(self.fail)
        invocation.context.bind(DirectOutlet(self, invocation))
        self.wire.pace = self.driver.pace(invocation.function)
        self.wire.accepted()

    def pull(self, stream: InputStream) -> Any:
        """Read frames until ``stream`` has a message; None when it has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        if stream.queue:
            return stream.take()
        if self._wrote_at:
            self._is_prompt = time.monotonic() - self._wrote_at < _PROMPT_S
            self._wrote_at = 0.0
        read, receive, invocation = self.wire.read, self.session.receive, self.invocation
        assert invocation is not None
        while True:
            if stream.is_ended:
                return stream.take()
            try:
                frame = read()
                steps = self.half_closed() if frame is None else receive(frame)
                for step in steps:
                    if type(step) is Feed:
                        invocation.feed(step)
                    else:
                        self.perform(step)
            except InvocationError as error:
                self._fail(error)
            if stream.queue:
                return stream.take()

    # The body.

    def _may_serve(self, invocation: Invocation) -> bool:
        """Receive until the body may be opened; whether there is anything to open it for."""
        try:
            while not invocation.may_begin():
                self.wire.settles = invocation.heeds_end
                patience_s = invocation.patience_s
                if patience_s is not None and not self.wire.await_frame(patience_s):
                    invocation.is_settled = True
                else:
                    self._receive()
        except InvocationError as error:
            self._fail(error)
            return False
        if invocation.got_nothing:
            self.finish(None)
            return False
        self.wire.settles = invocation.heeds_end
        return True

    def _serve(self, invocation: Invocation) -> None:
        inputs = tuple(DirectInput(self, stream) for stream in invocation.inputs)
        RUNNING.set(invocation.context)
        try:
            outputs = invocation.function.open(inputs, invocation.context)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            self.raised(error, call_failed)
            self.finish(None)  # unless that was an ending: who raises StopInvocation just stops
            return
        invocation.opened(len(outputs))
        if len(outputs) > 1:
            Several(self, invocation, inputs).run(outputs)
            return
        if outputs:
            self._drain(outputs[0], invocation)
        self.finish(None)

    def _drain(self, values: Iterator[Any], invocation: Invocation) -> None:
        encode, deliver, write, key = invocation.encode, self.session.deliver, self.wire.write, invocation.key
        hold = is_mapped = invocation.function.spec.style is Style.REQUEST_REPLY
        clock = time.monotonic
        try:
            for value in values:
                if not is_mapped:
                    hold = self._is_prompt if self._wrote_at == 0 else clock() - self._wrote_at < _PROMPT_S
                try:
                    index, message = encode(0, value)
                except Discarded:
                    self.check_over()
                    continue
                if invocation.is_finished:
                    return
                invocation.emit(index, message)
                for step in deliver(Emitted(key, index, message)):
                    write(step.frame, hold=hold)  # type: ignore[union-attr]
                if not is_mapped:
                    self._wrote_at = clock()
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            self.raised(error, production_failed)
        finally:
            self.close(values)

    def decode_failed(self, error: DecodeError) -> None:
        """An input could not be decoded: the invocation is over."""
        self.raised(error, production_failed)

    def check_over(self) -> None:
        """A value was dropped, so nothing has told the function that nobody is there any more."""
        if self.is_over():
            raise StopInvocation("the invocation is over")

    def raised(self, error: BaseException, translate: Callable[..., InvocationError]) -> None:
        """User code was left by an exception: an ending, unless the invocation is over already."""
        if isinstance(error, StopInvocation) and not isinstance(error, InputCancelled):
            return
        invocation = self.invocation
        assert invocation is not None
        if invocation.is_finished:
            if not isinstance(error, StopInvocation) and not comes_of(error, invocation.error):
                log.info("a function raised after its invocation had ended", extra={"invocation": invocation.id})
            return
        self._fail(translate(error, debug=self.driver.settings.debug))

    def close(self, values: Iterator[Any]) -> None:
        """Close a generator that has not ended, so that its ``finally`` runs here, in its own thread."""
        close = getattr(values, "close", None)
        if close is None:
            return
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - user code may raise anything in its finally
            if not isinstance(error, StopInvocation):
                assert self.invocation is not None
                log.warning(
                    "a function raised while it was closed: %r", error, extra={"invocation": self.invocation.id}
                )

    # Endings.

    def _fail(self, error: InvocationError) -> None:
        """End the invocation and tell the peer at once, since user code may take its time to leave (R-075, R-112)."""
        closed = self.finish(error)
        if closed is not None and not self.wire.is_gone:
            trailers = self._closed.trailers if self._closed is not None else ()
            self.wire.finish(int(closed.status), str(closed), trailers)

    def finish(self, error: InvocationError | None) -> InvocationError | None:
        """End the invocation, unless it has ended; the error of the ending that counts."""
        invocation = self.invocation
        assert invocation is not None
        if type(error) is Cancelled:
            error = self._why_gone(error)
        if invocation.finish(error):
            self.driver.engine.close(invocation)
            self._deliver(Finished(invocation.key, error))
        return invocation.error

    def _ending(self, error: InvocationError) -> InvocationError:
        """The conversation ends before an invocation runs, or with it."""
        if self.invocation is not None:
            self.finish(error)
        return self._why_gone(error) if type(error) is Cancelled else error

    def _why_gone(self, error: InvocationError) -> InvocationError:
        if self._cut is not None:
            return self._cut
        if self.deadline is not None and time.monotonic() >= self.deadline - _EARLY_S:
            return DeadlineExceeded("the deadline has passed")
        return error

    def _deliver(self, event: Finished | Elapsed) -> None:
        for step in self.session.deliver(event):
            self.perform(step)

    # What others ask and do meanwhile.

    def sweep(self, now: float) -> bool:
        """Notice that the peer is gone while user code is busy, and what takes too long; see `Sweeper`."""
        wire, settings = self.wire, self.driver.settings
        if self._is_over:
            return False
        if self._ended_at and self._ended_at + settings.lingering_s < now:
            self._ended_at = 0.0
            self._say(
                logging.WARNING, f"an invocation goes on although its inputs ended {settings.lingering_s:g} s ago"
            )
        is_ended = self.invocation is not None and self.invocation.is_finished
        if not wire.is_idle:
            if wire.look() or is_ended:
                self._notice_gone(now)
            elif self.invocation is not None:
                wrong = self._foresight.look(wire, self.session, self.invocation)
                if wrong is not None:
                    self._cut = self._cut or wrong
                    wire.refuse(int(wrong.status), str(wrong))
        return True

    def _notice_gone(self, now: float) -> None:
        """The peer is gone, or was told of an error, while user code is busy."""
        wire, settings = self.wire, self.driver.settings
        if not self._gone_at:
            self._gone_at = now
            self._awaiting.cancel()
        elif self._gone_at + settings.grace_s < now and not self._is_stuck:
            with wire.lock:
                self._is_stuck = not self._is_over
                self.driver.threads.stuck += self._is_stuck
            self._say(
                logging.WARNING,
                "a sync function ignores that its invocation ended; its thread is abandoned until it returns",
            )

    def _say(self, level: int, text: str) -> None:
        invocation = self.invocation
        name = invocation.function.spec.name if invocation is not None else ""
        number = invocation.id if invocation is not None else ""
        log.log(level, text, extra={"invocation": number, "function": name})

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""
        invocation = self.invocation
        return self.wire.is_gone or invocation is None or invocation.is_finished or self.wire.look()
