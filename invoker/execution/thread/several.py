"""`Several`: the outputs of one direct conversation, each drained by a thread of its own.

Each output may block on an input of its own, so each needs a thread; but there is one wire and one invocation. All
threads take turns under the wire's lock. Waiting threads wait for the wire: one of them polls, the others sleep until
it gets an event. No frame is held back for the next receive, since another output may have something to send meanwhile.

A thread that performs the steps of a frame may have to wait for room between two steps, which releases the lock. Until
all steps of a frame are done, no thread that wants an input polls, since the rest of the frame would not wake it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from invoker.core.steps import Emitted, Feed, OutputEnded
from invoker.core.streams import InputStream
from invoker.errors import Cancelled, InvocationError, StopInvocation
from invoker.execution.bodies.pool import Threads
from invoker.execution.bodies.sync import SpreadBody, SyncInput
from invoker.execution.thread.single import Single
from invoker.message import Message


class Several(SpreadBody):
    """Takes over from the body that called the function, once the function has returned several iterators.

    Args:
        single: The body that called the function.
        inputs: The function's own inputs; from now on they are pulled under the lock.
        threads: The pool of the threads for further outputs.
    """

    __slots__ = ("_is_receiving", "changed", "conversation", "lock", "wire")

    def __init__(self, single: Single, inputs: Sequence[SyncInput], threads: Threads) -> None:
        super().__init__(single.invocation, threads)
        self.began_ns = single.began_ns
        self.conversation = single.conversation
        self.wire = single.conversation.wire
        self.lock = self.changed = self.conversation.turns = self.wire.share()
        self._is_receiving = False
        for one in inputs:
            one.belong_to(self)
        self.invocation.context.bind(self)

    def run(self, outputs: Sequence[Iterator[Any]]) -> None:
        """Drain all outputs; returns once no thread is in user code any more."""
        self.drain_all(outputs)
        self.leave()
        with self.lock:
            while self.running:  # threads that wait for the wire read its events themselves
                self.changed.wait()
            self.conversation.finish(None)

    def pull(self, stream: InputStream) -> Any:
        """Wait for a message of ``stream``, and give it with its decoder; None when the stream has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        with self.lock:
            while True:
                item = stream.take()
                if item is not None or stream.is_ended:
                    return item
                try:
                    self._receive()
                except InvocationError as error:
                    self.break_off(error)

    def _receive(self) -> None:
        """Apply a frame that has come, or wait for the next event."""
        wire, conversation = self.wire, self.conversation
        self._check_peer()
        if self._is_receiving:
            self.changed.wait()
            return
        frame = wire.next_frame()
        if frame is not None:
            steps = conversation.session.receive(frame)
        elif wire.is_ended:
            wire.glance()
            self._check_peer()
            steps = conversation.half_closed()
        else:
            wire.ask()
            self._turn()
            return
        self._is_receiving = True
        try:
            for step in steps:
                if type(step) is Feed:
                    self.invocation.feed(step)
                else:
                    conversation.perform(step)
        finally:
            self._is_receiving = False
            self.changed.notify_all()

    def _check_peer(self) -> None:
        if self.wire.is_gone:
            raise Cancelled

    def _turn(self) -> None:
        if self.wire.is_done:
            self.changed.wait()  # the call is over; this waits only for threads in user code
        else:
            self.wire.turn()

    def put(self, index: int, message: Message[bytes]) -> None:
        """Write one message when there is room. The other threads continue while this one waits."""
        invocation = self.invocation
        with self.lock:
            self.wire.await_room()
            if invocation.is_finished:
                raise StopInvocation
            invocation.emit(index, message)
            self.conversation.deliver(Emitted(invocation.key, index, message))

    def tell_end(self, index: int) -> None:
        """Write that an output has ended."""
        self.conversation.deliver(OutputEnded(self.invocation.key, index))

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""
        return self.conversation.is_over()

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self.conversation.debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, and give its result (R-034)."""
        return self.conversation.wait(awaitable)

    def thread_left(self) -> None:
        """Wake the thread that waits for all threads of the function."""
        self.changed.notify_all()

    def break_off(self, error: InvocationError) -> None:
        """End the invocation; the peer is notified at once, whatever the other outputs do (R-112)."""
        self.conversation.break_off(error)
