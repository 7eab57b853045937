"""`UnaryTask`: runs an async function with one message for each input and one value, as one task of the loop.

Nothing waits for input and nothing is sent before the end, so there is neither a session nor a queue: the values are
decoded, the function is called, its value is encoded, and the transport answers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import CoroutineType
from typing import Any, TypeAlias

from invoker.author.mapping import is_plain
from invoker.codecs.interface import payload_of
from invoker.context import RUNNING
from invoker.core.invocation import Invocation
from invoker.core.unary import UnaryInvocation
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError, StopInvocation
from invoker.execution.bodies.loop import SMALL_BYTES, LoopInput, LoopRun, decoded, ending_of
from invoker.execution.bodies.runner import later, production_failed
from invoker.execution.bodies.turns import LARGE_BYTES, is_of_many
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import EARLY_S
from invoker.execution.placement import Run
from invoker.message import Message

log = logging.getLogger(__name__)

Answer: TypeAlias = Callable[["Message[bytes] | None", "InvocationError | None"], None]
"""Answers the peer: with the value of the function, if it gives one, or with the error that ended its invocation."""

Emit: TypeAlias = Callable[["Message[bytes]"], "InvocationError | None"]


class UnaryTask(LoopRun):
    """Runs one unary invocation. It is also the listener of the request, which gets no further frame.

    Args:
        driver: Starts the task; a drain of the driver waits for it.
        invocation: The invocation to run.
        messages: One message of each input.
        answer: Called once, with the ending. It is also called when the peer is gone, so that the request releases this
            object.
        second: Makes the error of a function that gives a second value.
        emitted: Called with the value before the invocation ends, since observers of its end may need what the caller
            makes of the value. Returns the error if the value is refused. None: nothing is to be called.
    """

    __slots__ = (
        *("_answer", "_driver", "_emitted", "_grace", "_has_begun", "_messages", "_second", "_sent", "_timer"),
        *("invocation", "loop", "name", "task"),
    )

    settles = False
    invocation: UnaryInvocation

    def __init__(
        self,
        driver: Driver,
        invocation: UnaryInvocation,
        messages: list[Message[bytes]],
        answer: Answer,
        second: Callable[[], InvocationError],
        emitted: Emit | None = None,
    ) -> None:
        self.invocation = invocation
        invocation.run = Run.TASK
        self.name = f"body {invocation.id}"
        self.task: asyncio.Task[None] | None = None
        self.loop = asyncio.get_running_loop()
        self._driver = driver
        self._messages = messages
        self._answer: Answer | None = answer
        self._second = second
        self._emitted = emitted
        self._sent: Message[bytes] | None = None
        self._has_begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None

    def start(self, timeout_s: float | None = None) -> None:
        """Begin, now or in this turn of the loop.

        Args:
            timeout_s: After this time the invocation ends because its deadline has passed; None: it has no deadline.
        """
        driver, invocation = self._driver, self.invocation
        invocation.end = partial(later, self.loop, self.fail)
        driver.conversations.add(self)
        driver.leaving[self] = invocation
        driver.linger(self, self._lingers)
        if invocation.limit is not None:
            driver.alarm.add(self, invocation.limit)
        if timeout_s is not None:
            self._timer = self.loop.call_later(timeout_s, self.fail, DeadlineExceeded())
        driver.spawn(self)

    async def run(self) -> None:
        """Call the function, in its task."""
        invocation, function, threads = self.invocation, self.invocation.function, self._driver.threads
        self._has_begun = True  # a task that is cancelled before it begins would never report that it has ended
        RUNNING.set(invocation.context)
        messages = self._messages
        try:
            if invocation.is_finished:
                return
            values, decoders = [], invocation.decoders(messages)
            for decode in decoders:
                if len(messages[0].payload) <= SMALL_BYTES or decode is payload_of:
                    values.append(decode(messages.pop(0)))
                else:
                    values.append(await decoded(threads, decode, messages.pop(0)))
            invocation.context.bind(self)
            inputs = [LoopInput(self, one) for one in invocation.inputs] if function.takes_context else ()
            call = function.bound(inputs, invocation.context)
            try:
                result = call() if function.ignores else call(*values)
                del values
                if type(result) is CoroutineType or not is_plain(result):
                    result = await result
            except (StopIteration, StopAsyncIteration) as error:
                # the error that a generator of its values would raise
                name = "StopIteration" if isinstance(error, StopIteration) else "StopAsyncIteration"
                raise RuntimeError(f"async generator raised {name}") from error
            if (given := self._give(result)) is not None:
                await given
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            # `ending_of` gives None if the invocation was stopped, or if the value was for an output without a reader.
            ending = ending_of(error, invocation, production_failed, debug=self._driver.settings.debug)
            self._end(self._sent if ending is None else None, ending)
        finally:
            messages.clear()
            invocation.context.release()
            if self._grace is not None:
                self._grace.cancel()
            self._driver.forget(self)

    def _give(self, value: Any) -> Awaitable[None] | None:
        """Encode the value of the function and end the invocation with it; returns an awaitable if that may block."""
        invocation, turns = self.invocation, self._driver.threads.turns
        if invocation.is_finished:
            return None
        name = invocation.function.spec.name
        if name in turns.known or is_of_many(value):
            return self._give_large(value)
        message = invocation.encode(0, value)[1]
        if len(message.payload) > LARGE_BYTES:
            turns.known.add(name)
            return turns.budget.run(partial(self._emit, message))
        self._emit(message)
        return None

    async def _give_large(self, value: Any) -> None:
        """Encode a large value in a turn of its own, and end the invocation with it."""
        turns = self._driver.threads.turns
        _, message = await turns.encode_on_loop(self.invocation.encode, 0, value)
        await turns.budget.run(partial(self._emit, message))

    def _emit(self, message: Message[bytes]) -> None:
        """End the invocation with the value that the function has returned; a second value is an error."""
        if self.invocation.is_finished:
            return
        self.invocation.emit(0, message)
        if self._sent is not None:
            self._end(None, self._second())
            return
        refusal = None if self._emitted is None else self._emitted(message)
        self._end(message if refusal is None else None, refusal)

    # The methods that a function calls by its context.

    async def send(self, index: int, value: Any) -> None:
        """Keep a value that the function sends by its context; a second value is an error."""
        message = self.invocation.encode_sent(index, value)
        if message is None:
            await self.discarded()
        elif self.invocation.is_finished:
            raise StopInvocation
        else:
            self.invocation.emit(index, message)
            if self._sent is not None:
                self._end(None, self._second())
                raise StopInvocation
            self._sent = message

    async def end(self, index: int) -> None:
        """End the output, as the function has asked by its context."""
        self.invocation.end_sent(index)

    # The request calls these methods, and a drain calls `fail`.

    def arrived(self, frame: Any | None) -> bool:  # noqa: ARG002 - the interface
        """Return True, since all of the request has come."""
        return True

    def gone(self) -> None:
        """End everything, because the client has left (R-115)."""
        deadline = self.invocation.context.deadline
        is_late = deadline is not None and time.monotonic() >= deadline - EARLY_S
        self._end(None, DeadlineExceeded() if is_late else Cancelled())
        self._stop()

    def fail(self, error: InvocationError) -> None:
        """End the invocation with an error, whatever its function does."""
        self._end(None, error)
        self._stop()

    # The driver's alarm uses these when the time limit has passed.

    @property
    def host(self) -> UnaryTask:
        """This object, since there is no conversation."""
        return self

    def finished(self, _: Invocation, error: InvocationError) -> None:
        """End the invocation with the error of its time limit."""
        self.fail(error)

    # Endings.

    def _end(self, message: Message[bytes] | None, error: InvocationError | None) -> None:
        """End the invocation, unless it has ended, and answer the peer."""
        driver, answer = self._driver, self._answer
        if not self.invocation.finish(error):
            return
        driver.engine.close(self.invocation)
        if self.invocation.limit is not None:
            driver.alarm.drop(self)
        if self._timer is not None:
            self._timer.cancel()
        self._answer = self._emitted = None  # they refer to the request, which refers to this object
        if answer is not None:
            answer(message, error)
        driver.exited(self)

    def _stop(self) -> None:
        """Cancel user code that still runs; it has some time to return."""
        task = self.task
        if task is None or task.done() or not self._has_begun or task is asyncio.current_task(self.loop):
            return
        task.cancel()
        self._grace = self.loop.call_later(self._driver.settings.grace_s, self._cancel_again)

    def _cancel_again(self) -> None:
        told = {"invocation": self.invocation.id, "function": self.invocation.function.spec.name}
        log.warning("an async function ignores that its invocation ended; it is cancelled again", extra=told)
        if self.task is not None:
            self.task.cancel()

    def _lingers(self) -> None:
        log.warning(
            "an invocation goes on although its inputs ended %s s ago",
            self._driver.settings.lingering_s,
            extra={"invocation": self.invocation.id, "function": self.invocation.function.spec.name},
        )
