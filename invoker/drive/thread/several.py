"""`Several`: the outputs of one direct conversation, each drained by a thread of its own.

Each output may block on an input of its own, so each needs a thread; but there is one wire and one invocation. All of
them take turns under the wire's lock. Whoever waits, waits for the wire: one of them polls, the others sleep until it
has news. Nothing is held or combined with a receive, since another output may have something to send meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from invoker.context import RUNNING
from invoker.core.invocation import Invocation
from invoker.core.steps import Emitted, Feed, OutputEnded
from invoker.core.streams import InputStream
from invoker.drive.bodies.runner import check_thread, production_failed
from invoker.errors import Cancelled, DecodeError, Discarded, InputCancelled, InvocationError, StopInvocation

if TYPE_CHECKING:
    from invoker.drive.thread.direct import DirectConversation
    from invoker.drive.thread.inputs import DirectInput

__all__ = ["Several"]

log = logging.getLogger(__name__)


class Several:
    """Drains the outputs of one function.

    Args:
        conversation: Whose session, wire and endings these are.
        invocation: That of the conversation.
        inputs: As the function holds them; from now on they pull under the lock.
    """

    def __init__(self, conversation: DirectConversation, invocation: Invocation, inputs: Sequence[DirectInput]) -> None:
        self.conversation = conversation
        self.invocation = invocation
        wire: Any = conversation.wire  # a `Line`, of which this uses more than its owner does
        self.wire = wire
        self.changed: threading.Condition = self.wire.share()
        self._running = 0
        for one in inputs:
            one.pull = self.pull
            one.failed = self.decode_failed
        self.is_over, self.wait = conversation.is_over, conversation.wait
        invocation.context.bind(self)

    def run(self, outputs: Sequence[Iterator[Any]]) -> None:
        """Drain them all; returns once no thread is in user code any more."""
        conversation, threads = self.conversation, self.conversation.driver.threads
        self._running = len(outputs)
        for index in range(1, len(outputs)):
            try:
                threads.start(lambda index=index: self._drain_other(index, outputs[index]))  # type: ignore[misc]
            except InvocationError as error:
                with self.changed:
                    self._running -= len(outputs) - index
                    self._finish(error)
                for one in outputs[index:]:
                    conversation.close(one)
                break
        self._drain(0, outputs[0])
        with self.changed:
            while self._running:  # those who wait for the wire poll for themselves
                self.changed.wait()
            self._finish(None)

    def pull(self, stream: InputStream) -> Any:
        """Take a message of ``stream``; None when it has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        with self.changed:
            while True:
                item = stream.take()
                if item is not None or stream.is_ended:
                    return item
                stream.waiters += 1
                try:
                    self._receive()
                except InvocationError as error:
                    self._finish(error)
                finally:
                    stream.waiters -= 1

    def decode_failed(self, error: DecodeError) -> None:
        """An input could not be decoded: the invocation is over."""
        with self.changed:
            self._finish(error)

    def _receive(self) -> None:
        """Apply a frame that is here, or wait for news."""
        wire, conversation = self.wire, self.conversation
        if wire.is_gone:
            raise Cancelled("the peer cancelled, or is gone")
        frame = wire.next_frame()
        if frame is not None:
            steps = conversation.session.receive(frame)
        elif wire.is_ended:
            wire.glance()
            if wire.is_gone:
                return
            steps = conversation.half_closed()
        else:
            wire.ask()
            self._turn()
            return
        for step in steps:
            if type(step) is Feed:
                self.invocation.feed(step)
            else:
                conversation.perform(step)
        self.changed.notify_all()

    def _turn(self) -> None:
        if self.wire.is_done:
            self.changed.wait()  # the call is over; only threads in user code are waited for
        else:
            self.wire.turn()

    def _drain_other(self, index: int, values: Iterator[Any]) -> None:
        RUNNING.set(self.invocation.context)
        try:
            self._drain(index, values)
        finally:
            RUNNING.set(None)

    def _drain(self, index: int, values: Iterator[Any]) -> None:
        invocation = self.invocation
        try:
            for value in values:
                try:
                    number, message = invocation.encode(index, value)
                except Discarded:
                    self._check_over()
                    continue
                with self.changed:
                    self._put(number, message)
            if invocation.end_output(index):
                with self.changed:
                    self._tell(OutputEnded(invocation.key, index))
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            self._raised(error)
        finally:
            self.conversation.close(values)
            with self.changed:
                self._running -= 1
                self.changed.notify_all()

    def _put(self, index: int, message: Any) -> None:
        wire, invocation = self.wire, self.invocation
        wire.await_room()
        if invocation.is_finished:
            raise StopInvocation("the invocation is over")
        invocation.emit(index, message)
        self._tell(Emitted(invocation.key, index, message))

    def _tell(self, event: Emitted | OutputEnded) -> None:
        for step in self.conversation.session.deliver(event):
            self.wire.put(step.frame)  # type: ignore[union-attr]  # an output is only ever sent

    def _check_over(self) -> None:
        """A value was dropped, so nothing has told the function that nobody is there any more."""
        if self.invocation.is_finished or self.wire.is_gone:
            raise StopInvocation("the invocation is over")

    @property
    def outputs(self) -> Sequence[Any]:
        """The outputs of the invocation."""
        return self.invocation.outputs

    def send(self, index: int, value: Any) -> None:
        """Emit a value that the function sends by its context; waits while the peer is slow."""
        check_thread()
        message = self.invocation.encode_sent(index, value)
        self._check_over()
        if message is None:
            return
        try:
            with self.changed:
                self._put(index, message)
        except InvocationError as error:  # the peer is gone; no function may make light of that
            self._raised(error)
            raise StopInvocation("the invocation is over") from None

    def end(self, index: int) -> None:
        """End an output as the function asks by its context."""
        with self.changed:
            if self.invocation.end_sent(index) and not self.invocation.is_finished:
                self._tell(OutputEnded(self.invocation.key, index))

    def _raised(self, error: BaseException) -> None:
        if isinstance(error, StopInvocation) and not isinstance(error, InputCancelled):
            return
        with self.changed:
            if self.invocation.is_finished:
                return
            self._finish(production_failed(error, debug=self.conversation.driver.settings.debug))

    def _finish(self, error: InvocationError | None) -> None:
        """The ending, with the lock held; an error is told at once, whatever the other outputs do (R-112)."""
        if self.invocation.is_finished:
            return
        closed = self.conversation.finish(error)
        if closed is not None:
            self.wire.send_status(int(closed.status), str(closed))
        self.changed.notify_all()
