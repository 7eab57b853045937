"""Bodies of the reference driver: each iterator of a function has a strand, of which only one runs at a time.

A strand is a thread that gives way where its function waits for an input. Coroutines of async functions are run by hand
there, so there is no event loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, cast

from invoker.author.spec import Take
from invoker.context import RUNNING
from invoker.core.invocation import Invocation
from invoker.core.steps import Emitted, Event, OutputEnded
from invoker.core.streams import InputStream
from invoker.errors import (
    CallError,
    DecodeError,
    Discarded,
    FunctionError,
    InputCancelled,
    InvocationError,
    StopInvocation,
    reason_of,
)
from invoker.message import Message, as_headers


class Host(Protocol):
    """What a body needs of its conversation."""

    def is_held(self) -> bool:
        """Whether bodies have given as many values as they may now."""

    def add(self, work: Coroutine[Any, Any, None]) -> None:
        """Have one more strand."""

    def deliver(self, event: Event) -> None:
        """Tell the session an event."""

    def finish(self, invocation: Invocation, error: InvocationError | None) -> None:
        """End an invocation."""


class Run:
    """One body; and what its context asks for (`invoker.context.Run`)."""

    def __init__(self, host: Host, invocation: Invocation) -> None:
        self.host, self.invocation, self.has_begun = host, invocation, False
        self.is_async = invocation.function.spec.is_async
        self._left = 0
        invocation.context.bind(cast(Any, self))

    async def work(self) -> None:
        """Call the function; each iterator that it gives gets a strand."""
        RUNNING.set(self.invocation.context)
        function, inputs = self.invocation.function, [_Input(self, one) for one in self.invocation.inputs]
        outputs: Sequence[Any] = ()
        try:
            opening: Any = function.open_async if self.is_async else function.open
            opened = opening(inputs, self.invocation.context)
            outputs = await opened if self.is_async else opened
        except BaseException as error:
            self.raised(error, CallError)
        self.invocation.opened(len(outputs))
        self._left = len(outputs)
        for index, values in enumerate(outputs):
            self.host.add(self._drain(index, values))
        if not outputs:
            self.host.finish(self.invocation, None)

    async def _drain(self, index: int, values: Any) -> None:
        RUNNING.set(self.invocation.context)
        try:
            await self._give(index, values)
        except BaseException as error:
            self.raised(error, FunctionError)
        self._left -= 1
        if not self._left:
            self.host.finish(self.invocation, None)

    async def _give(self, index: int, values: Any) -> None:
        invocation, end = self.invocation, object()
        try:
            while not invocation.is_finished:
                value = await anext(values, end) if self.is_async else next(values, end)
                if value is end:
                    break
                try:
                    number, message = invocation.encode(index, value)
                except Discarded:
                    continue
                self._emit(number, message)
            if invocation.end_output(index):
                self.host.deliver(OutputEnded(invocation.key, index))
        finally:
            close = getattr(values, "aclose" if self.is_async else "close", None)
            if close is not None:
                await close() if self.is_async else close()

    def _emit(self, index: int, message: Message[bytes]) -> None:
        if self.invocation.is_finished:
            raise StopInvocation("the invocation is over")
        self.invocation.emit(index, message)
        self.host.deliver(Emitted(self.invocation.key, index, message))
        current_strand().wait_while(self.host.is_held)

    def raised(self, error: BaseException, kind: type[InvocationError]) -> None:
        """User code raised, which ends the invocation, unless it was only told to stop."""
        if isinstance(error, InputCancelled):
            error = error.error
        if not isinstance(error, (InvocationError, StopInvocation)):
            error = kind(why=reason_of(error))
        if isinstance(error, InvocationError) and not isinstance(error, StopInvocation):
            self.host.finish(self.invocation, error)

    @property
    def outputs(self) -> Sequence[Any]:
        """The outputs of the invocation."""
        return self.invocation.outputs

    def is_over(self) -> bool:
        """Whether the invocation has ended."""
        return self.invocation.is_finished

    def send(self, index: int, value: Any) -> Any:
        """Emit a value."""
        message = self.invocation.encode_sent(index, value)
        if message is not None:
            self._emit(index, message)
        return _nothing() if self.is_async else None

    def end(self, index: int) -> Any:
        """End an output."""
        if self.invocation.end_sent(index):
            self.host.deliver(OutputEnded(self.invocation.key, index))
        return _nothing() if self.is_async else None


async def _nothing() -> None:
    """What an async function awaits that has sent something."""


class Strand(threading.Thread):
    """Runs a coroutine whenever it is let to, until that waits."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        super().__init__(name="invoker-reference", daemon=True)
        self.is_done, self._failure = False, cast(BaseException | None, None)
        self._work, self._waits = work, cast(Callable[[], bool], bool)
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self.start()

    def run(self) -> None:
        """Run the coroutine by hand."""
        self._go.acquire()
        try:
            while True:
                assert self._work.send(None) is None, "a function awaits something that needs an event loop"
        except StopIteration:
            self.is_done = True
        except BaseException as error:
            self._failure = error
        finally:
            self._back.release()

    @property
    def is_ready(self) -> bool:
        """Whether it has something to do."""
        return not self.is_done and not self._waits()

    def go_on(self) -> None:
        """Let it run until it waits, or has ended."""
        self._go.release()
        self._back.acquire()
        if self._failure is not None:
            raise self._failure

    def wait_while(self, waits: Callable[[], bool]) -> None:
        """Give way as long as something is so; called in this thread."""
        self._waits = waits
        while waits():
            self._back.release()
            self._go.acquire()


def current_strand() -> Strand:
    """The strand that runs."""
    return cast(Strand, threading.current_thread())


class _Input:
    """An input, as sync and async functions see it."""

    def __init__(self, run: Run, stream: InputStream) -> None:
        self._run, self._stream = run, stream

    def __iter__(self) -> _Input:
        return self

    __aiter__ = __iter__

    def __next__(self) -> Any:
        stream = self._stream
        current_strand().wait_while(lambda: not stream.queue and not stream.is_ended)
        item = stream.take()
        if item is None:
            raise StopIteration
        decode, message = item
        try:
            value = decode(message)
        except DecodeError as error:  # it ends the invocation even if user code swallows it
            self._run.raised(error, FunctionError)
            raise
        headers = as_headers(message.headers)
        shapes = {Take.PAYLOAD: value, Take.HEADERS: headers}
        return shapes.get(stream.spec.take, Message(value, headers, message.media_type or "application/octet-stream"))

    async def __anext__(self) -> Any:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None
