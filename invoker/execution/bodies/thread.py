"""`ThreadRunner`: runs a sync body in a thread of its own, so that it may block without delaying other calls.

The invocation is owned by two threads in turns: the loop feeds it, the body's thread takes from it, and each does so
while it holds this runner's one lock. Values cross in batches: values that the body emits while the loop is busy
writing wait in a short queue, and the loop is woken once for all of them. The last value of a call and the end of the
call also need only one wake-up. Decoding and encoding happen in the body's thread.

Each output has a thread that drains it (the first shares the body's), since each may block on an input of its own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from invoker.author.spec import Style
from invoker.core.budget import STEP_BYTES, ProcessBudget, Unread
from invoker.core.invocation import Invocation
from invoker.core.steps import CloseOutput, EndInput, Feed
from invoker.core.streams import InputStream
from invoker.errors import InvocationError, StopInvocation
from invoker.execution.bodies.awaiting import Awaiting
from invoker.execution.bodies.pool import Threads
from invoker.execution.bodies.runner import Host
from invoker.execution.bodies.sync import SpreadBody, SyncInput
from invoker.execution.bodies.turns import LARGE_BYTES
from invoker.execution.placement import Run
from invoker.message import Message

log = logging.getLogger(__name__)

OUTPUT_QUEUE = 16
"""The most values of one output that may wait for the wire; a function that gives more has to wait (R-127). A large
value counts as this many, until the peer has room for the next one."""


class ThreadRunner(SpreadBody):
    """Runs one sync body in threads of the pool.

    Args:
        invocation: The invocation to run.
        host: The conversation it belongs to; called on the loop only.
        threads: The pool of the threads.
        grace_s: How long user code may take to return before its thread counts as stuck (R-116).
        on_left: Called with the runner on the loop once user code has returned.
        debug: Whether the peer may see tracebacks.
        memory: Counts large values that the body has made and that are not yet written to the wire; None: they are not
            counted.
    """

    def __init__(
        self,
        invocation: Invocation,
        host: Host,
        *,
        threads: Threads,
        grace_s: float,
        on_left: Callable[[ThreadRunner], object],
        debug: bool = False,
        memory: ProcessBudget | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        super().__init__(invocation, threads)
        invocation.run = Run.POOL
        self._debug = debug
        self.host = host
        self.grace_s = grace_s
        self.has_left = False
        self._on_left = on_left
        self._grace: asyncio.TimerHandle | None = None
        self._is_counted_stuck = False
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.is_stopped = False
        # The values in the order in which the body gave them; None is the end of an output.
        self._queue: list[tuple[int, Message[bytes] | None]] = []
        self._queued = [0] * len(invocation.outputs)
        self._made = 0  # bytes of large values that are not yet written to the wire
        self._unread = Unread(memory) if memory is not None else None
        self._is_due = False  # whether `_notify` is scheduled, which wakes readers
        self._is_awake = False  # whether the forwarder is already awake, or will be woken, to send
        self._is_mapped = invocation.function.spec.style is Style.REQUEST_REPLY and len(invocation.outputs) == 1
        self._wakeup: asyncio.Future[None] | None = None
        self._forwarder: asyncio.Task[None] | None = None
        self._awaiting = Awaiting(self.loop)

    def start(self) -> None:
        """Start the body in a thread.

        Raises:
            Overloaded: Every thread is busy.
        """
        self.invocation.context.bind(self)
        self.threads.start(self._run)

    def feed(self, command: Feed) -> None:
        """Give one message to an input and wake its reader."""
        with self.lock:
            self.invocation.feed(command)
            if self._is_due or not self.invocation.inputs[command.index].waiters:
                return
            self._is_due = True
        self.loop.call_soon(self._notify)  # only once for all frames of this turn of the loop

    def _notify(self) -> None:
        with self.lock:
            self._is_due = False
            self.changed.notify_all()

    def end_inputs(self, command: EndInput) -> None:
        """End one or all inputs and wake their readers."""
        with self.lock:
            self.invocation.end_inputs(command)
            self.changed.notify_all()

    def close_output(self, command: CloseOutput) -> None:
        """Close an output without a reader: drop its queued values, and close its generator once it gives another."""
        with self.lock:
            self.invocation.close_output(command.index)
            if 0 <= command.index < len(self._queued):
                for index, message in self._queue:
                    if index == command.index and message is not None and len(message.payload) > STEP_BYTES:
                        self._count(-len(message.payload))
                self._queue = [one for one in self._queue if one[0] != command.index or one[1] is None]
                self._queued[command.index] = 0
                self.changed.notify_all()

    def finish(self, error: InvocationError | None) -> bool:
        """End the invocation; True for the first ending only."""
        with self.lock:
            return self.invocation.finish(error)

    def stop(self) -> None:
        """Make the body end: its next pull or emit raises; a body that does not end counts as stuck after the grace."""
        with self.lock:
            self.is_stopped = True
            self._queue = []
            self._count(-self._made)
            self.changed.notify_all()
        self._awaiting.cancel()
        # a cancelled task still refers to the batch that it was about to write
        forwarder, self._forwarder = self._forwarder, None
        if forwarder is not None and forwarder is not asyncio.current_task():
            forwarder.cancel()
        if not self.has_left:
            self._grace = self.loop.call_later(self.grace_s, self._is_stuck)

    def _is_stuck(self) -> None:
        log.warning(
            "a sync function ignores that its invocation ended; its thread is abandoned until it returns",
            extra={"invocation": self.invocation.id, "function": self.invocation.function.spec.name},
        )
        self.threads.stuck += 1
        self._is_counted_stuck = True

    # These methods run on the loop, and send the values that the body emitted.

    async def _forward(self) -> None:
        budget = self.threads.turns.budget
        while (batch := self._batch()) is not None:
            if not batch:
                self._wakeup = self.loop.create_future()
                if not self._is_awake:
                    await self._wakeup
                self._wakeup = None
                continue
            batch.reverse()
            while batch:
                index, message = batch.pop()
                if message is None:
                    self.host.ended(self.invocation, index)
                    continue
                try:
                    if (weight := len(message.payload)) <= LARGE_BYTES:
                        room = self.host.emitted(self.invocation, index, message)
                    else:
                        room = await budget.run(partial(self.host.emitted, self.invocation, index, message))
                    message = None  # the wire has the message, so this thread need not keep it
                    if weight > STEP_BYTES:
                        with self.lock:
                            self._count(-weight)
                    if room is not None:
                        await room
                    if weight > LARGE_BYTES:
                        self._make_room(index)
                except StopInvocation:
                    return
                except InvocationError as error:  # the peer is gone
                    self.host.finished(self.invocation, error)
                    return
        self.host.finished(self.invocation, self.failure)

    def _make_room(self, index: int) -> None:
        """Note that the wire has room for the next large value of an output."""
        with self.lock:
            self._queued[index] = max(0, self._queued[index] - OUTPUT_QUEUE)
            self.changed.notify_all()

    def _batch(self) -> list[tuple[int, Message[bytes] | None]] | None:
        """Take the values that wait for the wire, in the order in which the body gave them.

        Each output has room for a few values, so a fast one does not starve the others (R-131). Returns None when the
        body is over and everything is sent.
        """
        with self.lock:
            batch, self._queue = self._queue, []  # a new list, since the body's thread continues to fill the queue
            if batch:
                self._queued = [0] * len(self._queued)
                for index, message in batch:
                    if message is not None and len(message.payload) > LARGE_BYTES:
                        self._queued[index] = OUTPUT_QUEUE
                self.changed.notify_all()
            elif self.running == 0 or self.failure is not None:
                return None
            else:
                self._is_awake = False
            return batch

    def _wake(self) -> None:
        """Wake the forwarder; start it the first time."""
        if self._forwarder is None and not self.is_stopped:
            self._forwarder = self.loop.create_task(self._forward(), name=f"forward {self.invocation.id}")
        elif self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    def _wake_forwarder(self) -> None:
        """Wake the loop once, because there are values to send; called with the lock held."""
        if not self._is_awake:
            self._is_awake = True
            self.call_on_loop(self._wake)

    def call_on_loop(self, callback: Callable[[], None]) -> None:
        """Call a function on the loop from a body's thread; this is the only way to the loop.

        A closed loop ignores it.
        """
        try:
            self.loop.call_soon_threadsafe(callback)
        except RuntimeError:
            log.debug("the loop closed before a body returned", extra={"invocation": self.invocation.id})

    # These methods run in the body's threads.

    def _run(self) -> None:
        try:
            outputs = self.open(tuple(SyncInput(self, stream) for stream in self.invocation.inputs))
            if outputs:
                self.drain_all(outputs)
        finally:
            self.leave()

    @property
    def encode(self) -> Callable[[int, Any], tuple[int, Message[bytes]]]:
        """Encodes the values of the body; large values one after another."""
        invocation = self.invocation
        return partial(self.threads.turns.encode_any, invocation.encode, invocation.function.spec.name)

    def put(self, index: int, message: Message[bytes]) -> None:
        """Queue one message for the wire; waits while its output has no room."""
        weight = len(message.payload)
        with self.lock:
            if weight > STEP_BYTES and not self.is_stopped:
                self._count(weight)
            while self._queued[index] >= OUTPUT_QUEUE:
                if self.is_stopped:
                    break
                self.changed.wait()
            if self.is_stopped or self.failure is not None:
                # an endless output must not outlive the error of another output.
                raise StopInvocation
            self._queue.append((index, message))
            self._queued[index] += OUTPUT_QUEUE if weight > LARGE_BYTES else 1
            if not self._is_awake and not self._is_last():
                self._wake_forwarder()

    def _count(self, change: int) -> None:
        """Count values of more than `STEP_BYTES` that were made or sent; called with the lock held."""
        self._made = max(0, self._made + change)
        if self._unread is None or not change:
            return
        if self._made:
            self._unread.hold(self._made, self.invocation.budget.end)
        else:
            self._unread.take()

    def _is_last(self) -> bool:
        """Whether the body will end without running more of the author's code, so that its end wakes the forwarder."""
        return self._is_mapped and all(one.is_ended and not one.queue for one in self.invocation.inputs)

    def send(self, index: int, value: Any) -> None:
        """Emit a value that the function sends by its context.

        The function continues to run, so the value is sent now.
        """
        super().send(index, value)
        with self.lock:
            self._wake_forwarder()

    def tell_end(self, index: int) -> None:
        """Let the loop report that an output has ended."""
        self._queue.append((index, None))
        self._wake_forwarder()

    def is_over(self) -> bool:
        """Whether the invocation has ended, or is about to."""
        return self.is_stopped or self.failure is not None or self.invocation.is_finished

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""
        return self._debug

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block this thread until the loop has run ``awaitable``, and give its result (R-034)."""
        return self._awaiting.wait(awaitable)

    def break_off(self, error: InvocationError) -> None:  # noqa: ARG002 - the loop finds it in `failure`
        """Make the loop end the invocation."""
        self._wake_forwarder()

    def thread_left(self) -> None:
        """Notify the loop when no thread is left in user code."""
        if self.running == 0:
            self.invocation.context.release()
            self._is_awake = True
            self.call_on_loop(self._has_left)

    def _has_left(self) -> None:
        self._wake()
        if self.has_left:
            return
        self.has_left = True
        if self._grace is not None:
            self._grace.cancel()
        if self._is_counted_stuck:
            self.threads.stuck -= 1
        self._on_left(self)

    def pull(self, stream: InputStream) -> Any:
        """Wait for a message of ``stream``, and give it with its decoder; None when the stream has ended.

        Raises:
            InputCancelled: The stream ended with an error (R-110).
        """
        with self.lock:
            item = stream.take()
            if item is None:
                item = self._await_item(stream)
            if self.host.is_paused and stream.budget.is_low:
                self.call_on_loop(self.host.resume)
        if item is not None and len(item[1].payload) > LARGE_BYTES:
            return partial(self.threads.turns.decode, item[0]), item[1]
        return item

    def _await_item(self, stream: InputStream) -> Any:
        """Wait for a message; called with the lock held, which the wait releases."""
        stream.waiters += 1
        try:
            while not stream.is_ended:
                if self.host.is_paused or self.host.hears_waits:
                    self.call_on_loop(self.host.resume)  # the starvation rule
                self.changed.wait()
                item = stream.take()
                if item is not None:
                    return item
        finally:
            stream.waiters -= 1
        return None
