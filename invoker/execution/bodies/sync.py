"""`SyncBody`: the work of a thread that runs a sync function, however the function's values reach the peer.

The function is opened once; each iterator that it gives is drained by one thread, encoded value by encoded value, and
closed there. An exception that user code raises ends the invocation, unless it has ended already. The methods that the
function calls on its context are implemented here as well. The kinds of bodies differ only in how a value is sent and
in who is notified of an ending:

* `Single` writes to the wire in the thread that runs the function;
* `Several` does so in several threads, which take turns under the lock of the wire;
* `ThreadRunner` puts values on a queue, from which a task of the loop writes them.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from invoker.author.spec import Take
from invoker.context import RUNNING
from invoker.core.invocation import Invocation
from invoker.core.streams import InputStream
from invoker.errors import DecodeError, Discarded, InputCancelled, InvocationError, StopInvocation, let_go
from invoker.execution.bodies import calls
from invoker.execution.bodies.pool import Threads
from invoker.execution.bodies.runner import call_failed, check_thread, comes_of, production_failed, shape
from invoker.message import Message

log = logging.getLogger(__name__)


class SyncBody(ABC):
    """Runs one sync function in one thread; it is the `Run` behind the function's context.

    Args:
        invocation: The invocation to run.

    Attributes:
        began_ns: When the function was opened, on the processor clock of the thread that did it.
        failure: The error with which user code, or the codec of an input, has ended the invocation.
        lock: Held while user code's actions change the invocation.
    """

    __slots__ = ("began_ns", "failure", "invocation")

    lock: AbstractContextManager[Any]

    def __init__(self, invocation: Invocation) -> None:
        self.began_ns = 0
        self.invocation = invocation
        self.failure: InvocationError | None = None

    # Each subclass implements the following in its own way.

    @property
    def encode(self) -> Callable[[int, Any], tuple[int, Message[bytes]]]:
        """Encodes a value for an output; see `Invocation.encode`."""
        return self.invocation.encode

    @property
    @abstractmethod
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""

    @abstractmethod
    def pull(self, stream: InputStream) -> Any:
        """Wait for a message of ``stream``, and give it with its decoder; None when the stream has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """

    @abstractmethod
    def put(self, index: int, message: Message[bytes]) -> None:
        """Send one message to the peer; waits while the peer is slow."""

    @abstractmethod
    def tell_end(self, index: int) -> None:
        """Notify the peer that one of several outputs has ended; called with the lock held."""

    @abstractmethod
    def break_off(self, error: InvocationError) -> None:
        """End the invocation, which has not ended yet; called with the lock held."""

    @abstractmethod
    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""

    @abstractmethod
    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, and give its result (R-034)."""

    # The following methods are called by the function's context.

    @property
    def outputs(self) -> Sequence[Any]:
        """The streams on which the body emits, in the order of their index."""
        return self.invocation.outputs

    def send(self, index: int, value: Any) -> None:
        """Emit a value on an output; waits while the peer is slow."""
        self.check_thread()
        message = self.invocation.encode_sent(index, value)
        if message is None or self.invocation.is_finished:
            self.check_over()
            return
        try:
            self.put(index, message)
        except InvocationError as error:
            raise self._gone(error) from None

    def end(self, index: int) -> None:
        """End an output before the function returns."""
        try:
            with self.lock:
                if self.invocation.end_sent(index):
                    self.tell_end(index)
        except InvocationError as error:
            raise self._gone(error) from None

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call another function, and return its result."""
        return calls.call(self, self.invocation.context, name, args, kwargs)

    def stream(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        """Call another function, and give an iterator of its values."""
        return calls.stream(self, self.invocation.context, name, args, kwargs)

    def ask(self, question: Any) -> Any:
        """Ask the store by the scope of the invocation."""
        context = self.invocation.context
        return self.wait(calls.scope_of(context).ask(context, question))

    @property
    def variables(self) -> Any:
        """The variables of the host session."""
        from invoker.execution.bodies.variables import blocking

        return blocking(self.ask)

    def check_thread(self) -> None:
        """Raise EncodeError in a thread that must not send."""
        check_thread()

    def _gone(self, error: InvocationError) -> StopInvocation:
        """End the invocation, since the peer is gone, and make the exception that stops the function."""
        self.raised(error, production_failed)
        return StopInvocation()

    # These methods run in the threads of the body.

    def open(self, inputs: Sequence[SyncInput]) -> Sequence[Iterator[Any]]:
        """Call the function, and return its iterators; none if it raised."""
        invocation = self.invocation
        RUNNING.set(invocation.context)
        self.began_ns = time.thread_time_ns()
        try:
            outputs = invocation.function.open(inputs, invocation.context)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            self.spent(self.began_ns)
            self.raised(error, call_failed)
            return ()
        with self.lock:
            invocation.opened(len(outputs))
        return outputs

    def drain(self, index: int, values: Iterator[Any]) -> None:
        """Send what one iterator gives until it ends, fails, or the invocation is over."""
        # the first iterator is drained in the thread that opened it
        began_ns = time.thread_time_ns() if index else self.began_ns
        try:
            self.send_all(index, values)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            self.spent(began_ns)
            self.raised(error, production_failed)
        else:
            self.spent(began_ns)
        finally:
            self.close(values)

    def send_all(self, index: int, values: Iterator[Any]) -> None:
        """Send each value, then the end of the output if it has a reader of its own."""
        encode, put = self.encode, self.put
        for value in values:
            try:
                number, message = encode(index, value)
            except Discarded:
                self.check_over()
                continue
            del value  # the encoded message is enough while the peer is slow
            put(number, message)
        with self.lock:
            if self.invocation.end_output(index):
                self.tell_end(index)

    def spent(self, began_ns: int) -> None:
        """Count the processor time of the calling thread since ``began_ns``, on its clock, for the invocation."""
        with self.lock:
            self.invocation.cpu_ns += time.thread_time_ns() - began_ns

    def check_over(self) -> None:
        """Raise StopInvocation if the invocation is over. Called after a dropped value, where no write can raise it."""
        if self.is_over():
            raise StopInvocation

    def raised(self, error: BaseException, translate: Callable[..., InvocationError]) -> None:
        """End the invocation with an exception that user code raised, unless the invocation is over already."""
        if isinstance(error, StopInvocation) and not isinstance(error, InputCancelled):
            return
        invocation = self.invocation
        with self.lock:
            ending = self.failure or invocation.error
            if self.failure is None and not invocation.is_finished:
                self.failure = translate(error, debug=self.debug)
                self.break_off(self.failure)
                if invocation.error not in (None, self.failure):
                    # another ending counts, so this error is never logged; its frames hold the body
                    let_go(self.failure)
                return
        if not isinstance(error, StopInvocation) and not comes_of(error, ending):
            log.info("a function raised after its invocation had ended", extra={"invocation": invocation.id})

    def close(self, values: Iterator[Any]) -> None:
        """Close a generator that has not ended, so that its ``finally`` runs here, in its own thread."""
        close = getattr(values, "close", None)
        if close is None:
            return
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - user code may raise anything in its finally
            if not isinstance(error, StopInvocation):
                log.warning(
                    "a function raised while it was closed: %r", error, extra={"invocation": self.invocation.id}
                )


class SpreadBody(SyncBody):
    """A body with a thread for each iterator that its function gives, since each may block on an input of its own.

    Attributes:
        running: How many threads are still in user code; starts with 1 for the first thread.
        threads: The pool from which the other threads come.
    """

    __slots__ = ("running", "threads")

    def __init__(self, invocation: Invocation, threads: Threads) -> None:
        super().__init__(invocation)
        self.threads = threads
        self.running = 1

    @abstractmethod
    def thread_left(self) -> None:
        """Act on a thread that has left user code and is no longer counted in `running`; called with the lock held."""

    def drain_all(self, outputs: Sequence[Iterator[Any]]) -> None:
        """Drain the first iterator in this thread, and each of the others in a thread of the pool."""
        for index in range(1, len(outputs)):
            with self.lock:
                self.running += 1
            try:
                self.threads.start(partial(self._drain_other, index, outputs[index]))
            except InvocationError as error:
                with self.lock:
                    self.running -= 1
                self.raised(error, production_failed)
                for one in outputs[index:]:
                    self.close(one)
                break
        self.drain(0, outputs[0])

    def _drain_other(self, index: int, values: Iterator[Any]) -> None:
        RUNNING.set(self.invocation.context)
        try:
            self.drain(index, values)
        finally:
            self.leave()

    def leave(self) -> None:
        """Note that this thread has left user code."""
        with self.lock:
            self.running -= 1
            self.thread_left()


class SyncInput:
    """An input of a sync function: an iterator of decoded values, whose messages the body pulls."""

    __slots__ = ("_body", "_pull", "_stream")

    def __init__(self, body: SyncBody, stream: InputStream) -> None:
        self._stream = stream
        self._body = body
        self._pull = body.pull

    def belong_to(self, body: SyncBody) -> None:
        """Let another body pull messages from now on."""
        self._body = body
        self._pull = body.pull

    def __iter__(self) -> SyncInput:
        return self

    def __next__(self) -> Any:
        stream = self._stream
        item = self._pull(stream)
        if item is None:
            raise StopIteration
        decode, message = item
        try:
            value = decode(message)
        except DecodeError as error:
            # A failed decode ends the invocation even if user code swallows the exception.
            self._body.raised(error, production_failed)
            raise
        return value if stream.spec.take is Take.PAYLOAD else shape(stream.spec, message, value)
