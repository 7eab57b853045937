"""The driver, reduced to what it does with sessions, engine and invocations.

`Conversation` mirrors `invoker.drive.loop.reactor`; `Runner` the runner on the loop, and with ``is_queued`` the one
with threads: outputs wait in short queues for a forwarder, and nothing can interrupt user code.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from invoker.core.invocation import Invocation
from invoker.core.steps import Close, Elapsed, Emitted, EndInput, Feed, Finished, Open, Send, Step, Timer
from invoker.core.streams import InputStream
from invoker.drive.bodies.runner import call_failed, production_failed
from invoker.errors import Cancelled, DecodeError, InputCancelled, InvocationError, StopInvocation
from invoker.message import Message
from invoker.protocols.riff.session import RiffSession
from tests.simulate.peer import Plan
from tests.simulate.tasks import Interrupted, Task, Until

if TYPE_CHECKING:
    from tests.simulate.world import World

__all__ = ["Conversation", "Runner"]

_QUEUE = 2
_GRACE = 5


class Conversation:
    """One session with its caller's plan, its wire, and what was seen of it."""

    def __init__(self, world: World, number: int, plan: Plan) -> None:
        self.world, self.number, self.plan = world, number, plan
        self.session = RiffSession(function=plan.case.name)
        self.inbox: deque[bytes] = deque()
        self.outbox: deque[bytes] = deque()
        self.sent = 0  # frames that the caller has sent
        self.is_half_closed = False
        self.broken: InvocationError | None = None
        self.is_abandoned = False
        self.closes: list[InvocationError | None] = []
        self.endings = 0  # how often the invocation said that this is its first ending
        self.first_error: InvocationError | None = None
        self.written: list[bytes] = []
        self.received: list[list[bytes]] = [[] for _ in range(plan.case.outputs)]  # payloads on the wire
        self.written_at_close: int | None = None
        self.fed: list[tuple[int, bytes]] = []
        self.runner: Runner | None = None
        self.opened: Runner | None = None
        self._is_writing = False
        self.reader = world.start(f"reader {number}", self._read())
        world.start(f"main {number}", self._run())

    @property
    def is_closed(self) -> bool:
        """Whether the status is settled."""
        return bool(self.closes)

    @property
    def is_over(self) -> bool:
        """Whether nobody listens any more."""
        return self.is_closed or self.is_abandoned

    async def _run(self) -> None:
        await Until(lambda: self.is_over)
        if self.is_abandoned and self.runner is not None:
            self._end(self.runner, Cancelled("the caller is gone"))
        self.reader.interrupt()
        if self.runner is not None:
            self._end(self.runner, Cancelled("the conversation is over"))

    async def _read(self) -> None:
        try:
            while True:
                await Until(lambda: bool(self.inbox) or self.is_half_closed or self.broken is not None)
                if self.is_over:
                    return
                if self.broken is not None:
                    raise self.broken
                if not self.inbox:
                    break
                for step in self.session.receive(self.inbox.popleft()):
                    await self._perform(step)
                await self._gate()
            for step in self.session.half_close():
                await self._perform(step)
        except InvocationError as error:
            await self.fail_all(error)

    async def _gate(self) -> None:
        """Wait while inputs are above their mark and nobody starves (R-128, R-129)."""
        await Until(lambda: self.runner is None or self.runner.invocation.wants_input)
        if self.runner is not None:
            self.world.check_reading(self.runner.invocation)

    async def _perform(self, step: Step) -> None:
        if self.is_closed:
            self.world.expect(not isinstance(step, Send | Close), f"{type(step).__name__} after Close in {self.number}")
        if isinstance(step, Send):
            await self._write(step.frame)
        elif isinstance(step, Feed):
            self.fed.append((step.index, step.message.payload))
            await self._apply(lambda runner: runner.feed(step))
        elif isinstance(step, EndInput):
            await self._apply(lambda runner: runner.invocation.end_inputs(step))
        elif isinstance(step, Close):
            self.close(step.error)
        elif isinstance(step, Open):
            await self._open(step)
        elif isinstance(step, Timer):  # as if too many refusals waited already
            for one in self.session.deliver(Elapsed()):
                await self._perform(one)
        else:
            raise AssertionError(f"riff has no use for {step}")

    def close(self, error: InvocationError | None) -> None:
        """Settle the status."""
        self.closes.append(error)
        self.written_at_close = len(self.written)

    async def _write(self, frame: bytes) -> None:
        await Until(lambda: not self._is_writing)
        self._is_writing = True
        try:
            await Until(lambda: len(self.outbox) < self.plan.window or self.is_over)
            if not self.is_over:
                self.outbox.append(frame)
                self.written.append(frame)
                self.world.check_written(self, frame)
        finally:
            self._is_writing = False

    async def _apply(self, command: Callable[[Runner], None]) -> None:
        runner = self.runner
        if runner is None:
            return
        try:
            command(runner)
        except InvocationError as error:
            await self._finish(runner, error)

    async def _open(self, step: Open) -> None:
        try:
            invocation = self.world.engine.open(step)
        except InvocationError as error:
            self.first_error = error
            await self._deliver(Finished(step.id, error))
            return
        self.runner = self.opened = Runner(self, invocation)

    async def emitted(self, invocation: Invocation, index: int, message: Message[bytes]) -> None:
        """Send one output."""
        if invocation.is_finished:
            raise StopInvocation("the invocation is over")
        invocation.emit(index, message)
        for step in self.session.deliver(Emitted(invocation.key, index, message)):
            await self._perform(step)

    async def finished(self, invocation: Invocation, error: InvocationError | None) -> None:
        """An ending; only the first of them counts."""
        if self.runner is not None and self.runner.invocation is invocation:
            await self._finish(self.runner, error)

    async def _finish(self, runner: Runner, error: InvocationError | None) -> None:
        if self._end(runner, error):
            await self._deliver(Finished(runner.invocation.key, error))

    def _end(self, runner: Runner, error: InvocationError | None) -> bool:
        is_first = runner.invocation.finish(error)
        again = runner.invocation.finish(InvocationError("a second ending"))
        self.endings += is_first + again
        if not is_first:
            return False
        self.runner = None
        self.first_error = error
        self.world.engine.close(runner.invocation)
        runner.stop()
        return True

    async def _deliver(self, event: Finished) -> None:
        for step in self.session.deliver(event):
            await self._perform(step)

    async def fail_all(self, error: InvocationError) -> None:
        """The invocation ends with ``error``, and so does the conversation."""
        if self.is_abandoned:
            return
        if self.runner is not None:
            await self._finish(self.runner, error)
        if not self.is_closed:
            if self.first_error is None:
                self.first_error = error
            self.close(error)


class Runner:
    """Runs one body."""

    def __init__(self, conversation: Conversation, invocation: Invocation) -> None:
        self.conversation, self.invocation, self.world = conversation, invocation, conversation.world
        self.is_queued = conversation.plan.is_queued
        self.inputs = tuple(Input(self, stream) for stream in invocation.inputs)
        self.accepted: list[list[bytes]] = [[] for _ in invocation.inputs]
        self.produced: list[list[bytes]] = [[] for _ in invocation.outputs]
        self.begun: list[Any] = []  # generators whose drain began; any other has nothing to clean up
        self.waiting: list[Task] = []
        self.tasks: list[Task] = []
        self._queues: list[deque[Message[bytes]]] = [deque() for _ in invocation.outputs]
        self._failure: InvocationError | None = None
        self._left = False
        self._forwarder: Task | None = None
        self._spawn("body", self._body())
        if self.is_queued:
            self._forwarder = self.world.start(f"forward {invocation.id}", self._forward())

    def _spawn(self, name: str, coroutine: Any) -> Task:
        task = self.world.start(f"{name} {self.invocation.id}", coroutine)
        self.tasks.append(task)
        return task

    def feed(self, step: Feed) -> None:
        """Give one message to an input, and remember that it was taken in."""
        is_open = not self.invocation.is_finished
        self.invocation.feed(step)
        if is_open:
            self.accepted[step.index].append(step.message.payload)

    def stop(self) -> None:
        """Make the body leave; see the runners."""
        if self.is_queued:
            for queue in self._queues:
                queue.clear()
            if self._forwarder is not None and self._forwarder is not self.world.current:
                self._forwarder.interrupt()
            return
        self._interrupt(self.waiting)
        self.world.at(_GRACE, self._interrupt)

    def _interrupt(self, but: Sequence[Task] = ()) -> None:
        for task in self.tasks:
            if task not in but and task is not self.world.current:
                task.interrupt()

    async def _body(self) -> None:
        invocation = self.invocation
        try:
            outputs = await invocation.function.open_async(self.inputs, invocation.context)
        except BaseException as error:
            await self._raised(error, call_failed)
        else:
            await self._drain_all(outputs)
            if not self.is_queued and not invocation.is_finished:
                await self.conversation.finished(invocation, None)
        self._left = True

    async def _drain_all(self, outputs: Sequence[AsyncIterator[Any]]) -> None:
        drains = [self._spawn(f"drain {one}", self._drain(one, values)) for one, values in enumerate(outputs)]
        while not all(task.is_done for task in drains):
            try:
                await Until(lambda: all(task.is_done for task in drains))
            except Interrupted:
                continue  # the drains were interrupted too; they are waited for

    async def _drain(self, index: int, values: AsyncIterator[Any]) -> None:
        invocation = self.invocation
        self.begun.append(values)
        try:
            async for value in values:
                if not self.is_queued and invocation.is_finished:
                    return
                number, message = invocation.encode(index, value)
                await (self._put if self.is_queued else self._emit)(number, message)
            invocation.end_output(index)
        except BaseException as error:
            await self._raised(error, production_failed)
        finally:
            await self._close(values)

    async def _emit(self, index: int, message: Message[bytes]) -> None:
        if not self.invocation.is_finished:
            self.produced[index].append(message.payload)
        await self.conversation.emitted(self.invocation, index, message)

    async def _put(self, index: int, message: Message[bytes]) -> None:
        def is_over() -> bool:
            return self.invocation.is_finished or self._failure is not None

        await Until(lambda: len(self._queues[index]) < _QUEUE or is_over())
        if is_over():
            raise StopInvocation("the invocation is over")
        self.produced[index].append(message.payload)
        self._queues[index].append(message)

    async def _forward(self) -> None:
        while True:
            await Until(lambda: any(self._queues) or self._left or self._failure is not None)
            if not any(self._queues):
                break
            for index, queue in enumerate(self._queues):
                if queue:
                    try:
                        await self.conversation.emitted(self.invocation, index, queue.popleft())
                    except StopInvocation:
                        return
        await self.conversation.finished(self.invocation, self._failure)

    async def _raised(self, error: BaseException, translate: Callable[[BaseException], InvocationError]) -> None:
        if self.invocation.is_finished:
            return
        if isinstance(error, StopInvocation) and not isinstance(error, InputCancelled):
            return
        await self.fail(translate(error))

    async def fail(self, error: InvocationError) -> None:
        """The body failed."""
        if not self.is_queued:
            await self.conversation.finished(self.invocation, error)
        elif self._failure is None:
            self._failure = error

    async def _close(self, values: Any) -> None:
        try:
            await values.aclose()
        except BaseException as error:
            self.world.note(f"{self.invocation.id} raised {error!r} when it was closed")


class Input:
    """An input as a function sees it."""

    def __init__(self, runner: Runner, stream: InputStream) -> None:
        self._runner = runner
        self._stream = stream
        self.taken = 0

    def __aiter__(self) -> Input:
        return self

    async def __anext__(self) -> Any:
        stream, runner = self._stream, self._runner
        while (item := stream.take()) is None:
            if stream.is_ended:
                raise StopAsyncIteration
            await self._wait()
        decode, message = item
        self.taken += 1
        try:
            value = decode(message)
        except DecodeError as error:
            await runner.fail(error)
            raise
        expected = json.loads(runner.accepted[stream.index][self.taken - 1])
        where = f"input {stream.index} of {runner.invocation.id}"
        runner.world.expect(value == expected, f"{where} gave {value!r}, not {expected!r}")
        return value

    async def _wait(self) -> None:
        stream, task = self._stream, self._runner.world.current
        stream.waiters += 1
        self._runner.waiting.append(task)
        try:
            await Until(lambda: bool(stream.queue) or stream.is_ended)
        finally:
            stream.waiters -= 1
            self._runner.waiting.remove(task)
