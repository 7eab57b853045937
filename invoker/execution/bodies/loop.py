"""`LoopRunner`: runs an async body on the loop, without a hop.

A pull takes a message from the invocation at once, or awaits a future that the next feed resolves. An emit encodes and
writes in the same task; so a slow peer suspends the function (R-127), and a generator is never ahead of the wire by
more than one value. Each output is drained by a task of its own. The tasks write in the order in which they began to
wait for the wire, so no output is favoured (R-131).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from invoker.author.spec import Take
from invoker.codecs.costs import loop_bytes
from invoker.codecs.interface import payload_of
from invoker.context import RUNNING
from invoker.core.coding import Decode
from invoker.core.invocation import Invocation
from invoker.core.steps import CloseOutput, EndInput, Feed
from invoker.core.streams import InputStream
from invoker.errors import DecodeError, Discarded, InputCancelled, InvocationError, StopInvocation
from invoker.errors.wording import cannot_wait
from invoker.execution.bodies import calls
from invoker.execution.bodies.pool import Threads, off_loop
from invoker.execution.bodies.runner import Host, Spawn, call_failed, comes_of, production_failed, shape
from invoker.execution.bodies.turns import LARGE_BYTES, is_of_many
from invoker.execution.pace.turnbudget import NOTED_S
from invoker.execution.placement import Run
from invoker.message import Message

log = logging.getLogger(__name__)

_CLOSE_S = 5.0

SMALL_BYTES = 64
"""Payloads of at most this many bytes are decoded without measuring the time, because decoding them is fast."""


class LoopRun:
    """The methods of `invoker.context.Run` that all async bodies share; the function's `Context` calls them."""

    __slots__ = ()

    invocation: Invocation

    @property
    def outputs(self) -> Sequence[Any]:
        """The streams on which the body emits, in the order of their index."""
        return self.invocation.outputs

    def is_over(self) -> bool:
        """Whether the invocation has ended, so its body should end."""
        return self.invocation.is_finished

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Refuse, since the loop cannot block to wait for an awaitable that it must run itself."""
        raise cannot_wait(awaitable, is_over=False)

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Awaitable[Any]:
        """Call another function; the result is awaited."""
        return calls.acall(self.invocation.context, name, args, kwargs)

    def stream(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Call another function, and give an async iterator of its values."""
        return calls.astream(self.invocation.context, name, args, kwargs)

    def ask(self, question: Any) -> Awaitable[Any]:
        """Ask the store by the scope of the invocation; the answer is awaited."""
        return calls.scope_of(self.invocation.context).ask(self.invocation.context, question)

    @property
    def variables(self) -> Any:
        """The variables of the host session."""
        from invoker.execution.bodies.variables import awaited

        return awaited(self.ask)

    async def discarded(self) -> None:
        """Let other tasks run after a value was dropped, and raise StopInvocation if the invocation has ended."""
        await asyncio.sleep(0)
        if self.invocation.is_finished:
            raise StopInvocation


class LoopRunner(LoopRun):
    """Runs one async body as tasks of the running loop.

    Args:
        invocation: The invocation to run; owned by the loop.
        host: The conversation it belongs to.
        threads: The pool of threads that decode large payloads.
        grace_s: How long user code may take to return after its inputs failed, before it is cancelled.
        spawn: Makes the task of the body.
        on_left: Called with the runner once user code has returned.
        debug: Whether the peer may see tracebacks.
    """

    def __init__(
        self,
        invocation: Invocation,
        host: Host,
        *,
        threads: Threads,
        grace_s: float,
        spawn: Spawn,
        on_left: Callable[[LoopRunner], object],
        debug: bool = False,
    ) -> None:
        self.threads = threads
        self.invocation = invocation
        invocation.run = Run.LOOP
        self.host = host
        self.grace_s = grace_s
        self.debug = debug
        self.loop = asyncio.get_running_loop()  # the loop is kept, since getting it costs a system call
        self.has_left = False
        self.inputs: tuple[LoopInput, ...] = tuple([LoopInput(self, stream) for stream in invocation.inputs])
        self.name = f"body {invocation.id}"
        self.task: asyncio.Task[None] | None = None
        self._spawn = spawn
        self._on_left = on_left
        self._has_begun = False
        self._drains: Sequence[asyncio.Task[None]] = ()
        self._grace: asyncio.TimerHandle | None = None
        self._is_through = False  # whether all code of the function has ended
        invocation.context.bind(self)

    def start(self) -> None:
        """Make the task that runs the body; it may begin in a later turn of the loop."""
        self._spawn(self)

    def feed(self, command: Feed) -> None:
        """Give one message to an input and wake its reader."""
        self.invocation.feed(command)
        if 0 <= command.index < len(self.inputs):
            self.inputs[command.index].wake()

    def end_inputs(self, command: EndInput) -> None:
        """End one or all inputs and wake their readers."""
        self.invocation.end_inputs(command)
        for one in self.inputs:
            one.wake()

    def close_output(self, command: CloseOutput) -> None:
        """Close an output without a reader: its generator is closed when it gives another value."""
        self.invocation.close_output(command.index)

    async def send(self, index: int, value: Any) -> None:
        """Emit a value that the function sends by its context; returns when the peer has room for it."""
        message = self.invocation.encode_sent(index, value)
        if message is not None:
            if (room := self.host.emitted(self.invocation, index, message)) is not None:
                await room
        else:
            await self.discarded()

    async def end(self, index: int) -> None:
        """End an output, as the function has asked by its context."""
        if self.invocation.end_sent(index):
            self.host.ended(self.invocation, index)

    def finish(self, error: InvocationError | None) -> bool:
        """End the invocation; True for the first ending only."""
        return self.invocation.finish(error)

    def stop(self) -> None:
        """Make the body end: readers that wait see the error, everything else is cancelled.

        A body that waits on an input gets `InputCancelled` there (R-110) and the grace to clean up; one that waits
        elsewhere is cancelled now (R-115).
        """
        waiting = {task for one in self.inputs for task in one.wake()}
        if self._is_through or self.has_left:
            return
        current = asyncio.current_task(self.loop)  # this task reports the ending and then ends without being cancelled
        for task in self._tasks():
            if task not in waiting and task is not current:
                task.cancel()
        self._grace = self.loop.call_later(self.grace_s, self._cancel_rest)

    def _cancel_rest(self) -> None:
        log.warning(
            "an async function ignores that its invocation ended; it is cancelled again",
            extra={"invocation": self.invocation.id, "function": self.invocation.function.spec.name},
        )
        for task in self._tasks():
            task.cancel()

    def _tasks(self) -> Sequence[asyncio.Task[None]]:
        """The tasks to cancel to stop the body: the drains if there are any, since the main task only awaits them."""
        return self._drains or ((self.task,) if self.task is not None and self._has_begun else ())

    async def run(self) -> None:
        """Run the function to its end, in its task."""
        invocation, context = self.invocation, self.invocation.context
        self._has_begun = True  # a task that is cancelled before it begins would never report that it has ended
        RUNNING.set(context)
        try:
            try:
                outputs = await invocation.function.open_async(self.inputs, context)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
                self._raised(error, call_failed)
                outputs = ()
            invocation.opened(len(outputs))
            if len(outputs) == 1:
                await self._drain(0, outputs[0])
            elif outputs:
                await self._drain_all(outputs)
            self._is_through = True
            if not invocation.is_finished:
                self.host.finished(invocation, None)
        finally:
            context.release()
            self._leave()

    def _leave(self) -> None:
        self.has_left = True
        self.inputs = ()  # the inputs refer to this object, which would have to wait for the garbage collector
        if self._grace is not None:
            self._grace.cancel()
        self._on_left(self)

    async def _drain_all(self, outputs: Sequence[AsyncIterator[Any]]) -> None:
        tasks = [self.loop.create_task(self._drain(index, output)) for index, output in enumerate(outputs)]
        self._drains = tasks
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_CLOSE_S)
            raise
        finally:
            self._drains = ()

    async def _drain(self, index: int, values: AsyncIterator[Any]) -> None:
        """Send what one output yields until it ends, fails, or the invocation is over."""
        invocation, emitted = self.invocation, self.host.emitted
        turns, name = self.threads.turns, self.invocation.function.spec.name
        try:
            async for value in values:
                if invocation.is_finished:
                    return
                try:
                    if name in turns.known or is_of_many(value):
                        number, message = await turns.encode_on_loop(invocation.encode, index, value)
                    else:
                        number, message = invocation.encode(index, value)
                        if len(message.payload) > LARGE_BYTES:
                            turns.known.add(name)
                except Discarded:
                    await self.discarded()
                    continue
                if len(message.payload) <= LARGE_BYTES:
                    room = emitted(invocation, number, message)
                else:
                    room = await turns.budget.run(partial(emitted, invocation, number, message))
                if room is not None:
                    del value, message  # the wire has the message, and the peer may be slow
                    await room
            if invocation.end_output(index):
                self.host.ended(invocation, index)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything (R-123)
            self._raised(error, production_failed)
        finally:
            if getattr(values, "ag_frame", values) is not None:  # a generator without a frame has ended
                await _close(values, invocation)

    def _raised(self, error: BaseException, translate: Any) -> None:
        """End the invocation with an exception that user code raised, unless the invocation is over already."""
        if (ending := ending_of(error, self.invocation, translate, debug=self.debug)) is not None:
            self.host.finished(self.invocation, ending)


def ending_of(error: BaseException, invocation: Invocation, translate: Any, *, debug: bool) -> InvocationError | None:
    """The error with which an invocation ends after user code has raised; None: it is over already.

    Args:
        error: The exception that user code has raised.
        invocation: The invocation of that code.
        translate: Converts an exception of user code to an `InvocationError`.
        debug: Whether the peer may see a traceback.
    """
    if invocation.is_finished:
        if not (isinstance(error, (asyncio.CancelledError, StopInvocation)) or comes_of(error, invocation.error)):
            log.info("a function raised after its invocation had ended", extra={"invocation": invocation.id})
        return None
    if isinstance(error, StopInvocation) and not isinstance(error, InputCancelled):
        return None
    ending: InvocationError = translate(error, debug=debug)
    return ending


async def decoded(threads: Threads, decode: Decode, message: Message[bytes]) -> Any:
    """Decode a message of more than `SMALL_BYTES` bytes: on the loop, or in a thread if it is large."""
    if len(message.payload) >= loop_bytes(message.media_type):
        return await off_loop(threads, lambda: threads.turns.decode(decode, message))
    budget = threads.turns.budget
    if budget.is_spent:
        await budget.next()
    began_s = time.monotonic()
    value = decode(message)
    if (took_s := time.monotonic() - began_s) > NOTED_S:
        budget.spend(took_s)
    return value


async def _close(values: AsyncIterator[Any], invocation: Invocation) -> None:
    """Close a generator that has not ended, so that its ``finally`` runs; bounded in time."""
    close = getattr(values, "aclose", None)
    if close is None:
        return
    try:
        async with asyncio.timeout(_CLOSE_S):
            await close()
    except TimeoutError:
        log.warning("a function did not close within %s s", _CLOSE_S, extra={"invocation": invocation.id})
    except BaseException as error:
        if not invocation.is_finished:
            raise
        if not isinstance(error, (asyncio.CancelledError, StopInvocation)):
            log.warning("a function raised while it was closed: %r", error, extra={"invocation": invocation.id})


class LoopInput:
    """An input for an async function: an async iterator of decoded values."""

    __slots__ = ("_runner", "_stream", "_waiters")

    def __init__(self, runner: Any, stream: InputStream) -> None:
        self._runner = runner
        self._stream = stream
        self._waiters: dict[asyncio.Future[None], asyncio.Task[Any] | None] = {}

    def __aiter__(self) -> LoopInput:
        return self

    async def __anext__(self) -> Any:
        stream = self._stream
        item = stream.take()
        while item is None:
            if stream.is_ended:
                raise StopAsyncIteration
            await self._wait()
            item = stream.take()
        if self._runner.host.is_paused and stream.budget.is_low:
            self._runner.host.resume()
        decode, message = item
        try:
            if len(message.payload) <= SMALL_BYTES or decode is payload_of:
                value = decode(message)
            else:
                value = await decoded(self._runner.threads, decode, message)
        except DecodeError as error:
            # A failed decode ends the invocation even if user code swallows the exception.
            self._runner.host.finished(self._runner.invocation, error)
            raise
        return value if stream.spec.take is Take.PAYLOAD else shape(stream.spec, message, value)

    def wake(self) -> list[asyncio.Task[Any] | None]:
        """Wake every reader that waits, and give the tasks that were waiting."""
        if not self._waiters:
            return []
        woken = list(self._waiters.values())
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        return woken

    async def _wait(self) -> None:
        runner = self._runner
        waiter = runner.loop.create_future()
        self._waiters[waiter] = asyncio.current_task(runner.loop)
        self._stream.waiters += 1
        runner.host.resume()  # the starvation rule: the function waits for an empty input
        try:
            await waiter
        finally:
            del self._waiters[waiter]
            self._stream.waiters -= 1
