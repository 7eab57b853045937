"""`Spread`: the outputs of one `Whole` conversation, each drained by a thread of its own.

The iterator of each output may block in the author's code, for instance until another output has advanced, so each
needs a thread. They share one invocation, so they take turns under the lock of the body that called the function.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from invoker.core.streams import InputStream
from invoker.errors import InvocationError, StopInvocation
from invoker.execution.bodies.pool import Threads
from invoker.execution.bodies.sync import SpreadBody, SyncBody, SyncInput
from invoker.message import Message


class Spread(SpreadBody):
    """Takes over from the body that called the function, once the function has returned several iterators.

    Args:
        body: The body that called the function; it does not wait for input, and its lock is reentrant.
        inputs: The function's own inputs; from now on they are pulled under the lock.
        threads: The pool of the threads for further outputs.
    """

    __slots__ = ("_all_left", "_body", "lock")

    def __init__(self, body: SyncBody, inputs: Sequence[SyncInput], threads: Threads) -> None:
        super().__init__(body.invocation, threads)
        self.began_ns = body.began_ns
        self.lock = body.lock
        self._body = body
        self._all_left = threading.Event()
        for one in inputs:
            one.belong_to(self)
        self.invocation.context.bind(self)

    def run(self, outputs: Sequence[Iterator[Any]]) -> None:
        """Drain all outputs; returns once no thread is in user code any more."""
        self.drain_all(outputs)
        self.leave()
        self._all_left.wait()

    def thread_left(self) -> None:
        """Wake the thread that waits for all threads of the function."""
        if not self.running:
            self._all_left.set()

    def pull(self, stream: InputStream) -> Any:
        """Take a message of ``stream``; None when it has ended."""
        with self.lock:
            return self._body.pull(stream)

    def put(self, index: int, message: Message[bytes]) -> None:
        """Send one message; other threads that want to send wait meanwhile."""
        with self.lock:
            if self.invocation.is_finished:
                raise StopInvocation
            self._body.put(index, message)

    def tell_end(self, index: int) -> None:
        """Notify the peer that an output has ended."""
        self._body.tell_end(index)

    def break_off(self, error: InvocationError) -> None:
        """End the invocation; the peer is notified at once, whatever the other outputs do (R-112)."""
        self._body.break_off(error)

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""
        return self._body.is_over()

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self._body.debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, and give its result (R-034)."""
        return self._body.wait(awaitable)
