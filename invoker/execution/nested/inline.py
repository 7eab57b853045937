"""`Inline`: runs a sync function in the thread of the sync function that calls it, value by value.

Nothing passes between threads: taking the next result runs the callee until it gives one, and when the callee wants a
value of an iterator among its arguments, that iterator is advanced. So no thread waits for another, there is no queue,
and a callee whose values are not taken does not continue.
"""

from __future__ import annotations

import time
from _thread import RLock
from collections.abc import Awaitable, Generator, Iterable, Iterator, Mapping
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Any, Final

from invoker.context import Context
from invoker.core.invocation import Invocation
from invoker.core.steps import Emitted, EndInput, Feed
from invoker.core.streams import InputStream
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    Discarded,
    EncodeError,
    InputCancelled,
    InvocationError,
    StopInvocation,
)
from invoker.execution.bodies.runner import production_failed
from invoker.execution.bodies.sync import SyncBody, SyncInput
from invoker.execution.bodies.values import encode_value, refused_argument
from invoker.execution.driver import Driver
from invoker.execution.placement import Run
from invoker.message import Message

_END: Final = object()


class Inline(SyncBody):
    """One nested invocation, in the thread of its caller.

    Args:
        driver: Has the engine.
        invocation: The invocation, which the engine has admitted.
        given: The values of the arguments that are not iterators, and the ends of their inputs.
        iterators: The iterators of the caller, by the index of the input that they feed.
    """

    __slots__ = ("_cut", "_driver", "_given", "_iterators", "_raised", "_sent", "lock")

    def __init__(
        self, driver: Driver, invocation: Invocation, given: Iterable[Any], iterators: Mapping[int, Iterator[Any]]
    ) -> None:
        super().__init__(invocation)
        invocation.run = Run.CALLER
        self.lock = RLock()
        self._driver = driver
        self._given = given
        self._iterators = iterators
        self._cut: InvocationError | None = None
        self._sent: list[Emitted] = []
        self._raised: BaseException | None = None
        invocation.may_be_ended(self._fail)

    def run(self) -> Generator[Emitted, None, None]:
        """Give the results as the function makes them; raises the error with which the invocation ends."""
        invocation, variables = self.invocation, copy_context()
        ending: InvocationError | None = Cancelled("the caller reads no more values")
        try:
            self._feed()
            if not (invocation.function.awaits_values and invocation.got_nothing):
                invocation.context.bind(self)
                yield from self._values(variables)
            ending = None
        except InvocationError as error:
            ending = error
        finally:
            if invocation.finish(self.failure or ending):
                self._driver.engine.close(invocation)
            invocation.context.release()
            if invocation.has_place:
                self._driver.engine.left(invocation)
        if self._raised is not None:
            raise self._raised
        if invocation.error is not None:
            raise invocation.error

    def _values(self, variables: Variables) -> Iterator[Emitted]:
        """Run the function from one value to the next, with context variables of its own (R-012)."""
        invocation = self.invocation
        outputs = variables.run(self.open, [SyncInput(self, stream) for stream in invocation.inputs])
        for index, values in enumerate(outputs):
            try:
                while (message := variables.run(self._advance, index, values)) is not _END:
                    yield from self._flush()
                    if message is not None:
                        invocation.emit(message[0], message[1])
                        yield Emitted(invocation.key, *message)
            finally:
                variables.run(self.close, values)
            yield from self._flush()

    def _advance(self, index: int, values: Iterator[Any]) -> Any:
        """Run the function to its next value, and encode it; None if the output has no reader."""
        try:
            for value in values:
                self.check_over()
                try:
                    return self.invocation.encode(index, value)
                except Discarded:
                    return None
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            self.raised(error, production_failed)
            if self.failure is None:
                self._end_as_cut()
        return _END

    def _flush(self) -> Iterator[Emitted]:
        """Yield the values that the function has sent by its context."""
        sent, self._sent = self._sent, []
        yield from sent

    def _feed(self) -> None:
        for step in self._given:
            if type(step) is Feed:
                self.invocation.feed(step)
            else:
                self.invocation.end_inputs(step)
        self.invocation.may_begin()

    # The following methods are abstract in `SyncBody`.

    def pull(self, stream: InputStream) -> Any:
        """Take a message of ``stream``, which may advance an iterator of the caller; None when it has ended.

        Raises:
            InputCancelled: The caller's invocation is over (R-110).
        """
        if self.is_over():
            raise InputCancelled(self._why())
        values = self._iterators.get(stream.index)
        if values is not None and not stream.queue and not stream.is_ended:
            self._advance_caller(stream.index, values)
        return stream.take()

    def _advance_caller(self, index: int, values: Iterator[Any]) -> None:
        """Feed the next value of an iterator of the caller.

        An error of the iterator is the caller's, and ends the call.
        """
        try:
            for value in values:
                try:
                    message = encode_value(value)
                except EncodeError as error:
                    raise refused_argument(error, index) from error
                self.invocation.feed(Feed(self.invocation.key, index, message))
                return
        except BaseException as error:  # noqa: BLE001 - it is code of the caller, who gets the exception
            self._raised = error
            self._cut = Cancelled(f"the caller's iterator for input {index} raised")
            raise InputCancelled(self._cut) from None
        self.invocation.end_inputs(EndInput(self.invocation.key, index))

    def put(self, index: int, message: Message[bytes]) -> None:
        """Keep a message that the function sends by its context until the caller takes the next value."""
        self.invocation.emit(index, message)
        self._sent.append(Emitted(self.invocation.key, index, message))

    def tell_end(self, index: int) -> None:
        """Do nothing: the caller is notified when all outputs have ended."""

    def break_off(self, error: InvocationError) -> None:
        """End the invocation with this error, unless it has ended."""
        if self.invocation.finish(error):
            self._driver.engine.close(self.invocation)

    def is_over(self) -> bool:
        """Whether the invocation has ended, its deadline has passed, or the caller's invocation is over."""
        invocation, context = self.invocation, self.invocation.context
        if self._cut is not None or invocation.is_finished or (context.caller is not None and context.caller.cancelled):
            return True
        if context.deadline is None:
            return False
        now = time.monotonic()  # `TimeLimit.stop` sets the end of the limit to now
        return now >= context.deadline or (invocation.limit is not None and now >= invocation.limit.ends_at)

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self._driver.settings.debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, as the caller does (R-034)."""
        caller = self.invocation.context.caller
        assert caller is not None
        return caller.wait(awaitable)

    def check_thread(self) -> None:
        """Allow any thread, since messages are only kept."""

    # Endings.

    def _fail(self, error: InvocationError) -> None:
        """End the invocation from another thread: the next pull or value notices it."""
        self._cut = error

    def _why(self) -> InvocationError:
        limit, deadline, now = self.invocation.limit, self.invocation.context.deadline, time.monotonic()
        if self._cut is not None:
            return self._cut
        if limit is not None and now >= limit.ends_at:
            return limit.error
        if deadline is not None and now >= deadline:
            return DeadlineExceeded()
        return Cancelled("the caller's invocation is over")

    def _end_as_cut(self) -> None:
        """End the invocation after its function was asked to stop and has returned."""
        self.break_off(self._why())


def check_caller(caller: Context, error: InvocationError) -> None:
    """Raise StopInvocation in a caller that is over, if its callee was cancelled for this reason."""
    if isinstance(error, Cancelled) and caller.cancelled:
        raise StopInvocation
