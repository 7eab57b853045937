"""`Asking`: performs nested calls and store questions of a child; `PipeScope` is the child's end.

Results of a nested call, and the values of iterators that are its arguments, cross the pipe when the other end wants
the next one. So neither end holds more than one value of each.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from invoker.codecs.exact import ACCEPTS
from invoker.context import Argument, Context
from invoker.core import store
from invoker.errors import InternalError, InvocationError, NestedError
from invoker.execution.isolation.faults import fault_of, raised_by
from invoker.execution.isolation.frames import Answer, Asked, FromChild, Packed, ToChild, packed, unpacked
from invoker.message import Message

log = logging.getLogger(__name__)

_ANSWERS: dict[str, Any] = {one.__name__: one for one in (store.Space, store.Item, store.Refused)}
_QUESTIONS: dict[str, Any] = {
    one.__name__: one for one in (store.Look, store.Hold, store.Drop, store.Get, store.Scan, store.Put, store.Create)
}


class Asking:
    """Performs the nested calls and the store questions of one invocation in a child.

    Args:
        context: The context of the invocation, whose scope is used.
        send: Sends a frame to the child.
    """

    def __init__(self, context: Context, send: Callable[[ToChild], None]) -> None:
        self._context = context
        self._send = send
        self._calls: dict[int, _Call] = {}

    def heard(self, frame: Asked) -> None:
        """Begin, continue or drop a call, a stream or a question."""
        if frame.what in ("call", "stream", "ask"):
            if frame.number not in self._calls:
                self._calls[frame.number] = _Call(self._context, frame, self._send)
            return
        call = self._calls.get(frame.number)
        if call is None:
            return
        if frame.what == "drop":
            del self._calls[frame.number]
            call.close()
        elif frame.what == "more":
            call.more.set()
        else:
            call.piece(frame)

    def close(self) -> None:
        """Close all calls that are open, since the invocation is over."""
        for one in self._calls.values():
            one.close()
        self._calls.clear()


class _Call:
    """One nested call, or one question."""

    def __init__(self, context: Context, frame: Asked, send: Callable[[ToChild], None]) -> None:
        self.more = asyncio.Event()
        self._number = frame.number
        self._send = send
        self._streams = [_Pieces(self, slot) for slot in range(_streams_of(frame))]
        self._task = asyncio.get_running_loop().create_task(self._run(context, frame), name="nested of a child")

    def piece(self, frame: Asked) -> None:
        """Take the next value of an iterator that is an argument."""
        slot = frame.value
        if isinstance(slot, int) and 0 <= slot < len(self._streams):
            self._streams[slot].came(frame.args[0] if frame.args else None)

    def wants(self, slot: int) -> None:
        """Request the next value of an iterator."""
        self._send(Answer(self._number, wants=slot))

    def close(self) -> None:
        """Close the call, since its result is no longer wanted."""
        self._task.cancel()

    async def _run(self, context: Context, frame: Asked) -> None:
        try:
            if frame.what == "ask":
                await self._ask(context, frame)
            else:
                await self._call(context, frame)
        except InvocationError as error:
            self._send(Answer(self._number, fault=fault_of(error)))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a request of an isolated function to its parent process failed")
            self._send(Answer(self._number, fault=fault_of(InternalError())))
        else:
            self._send(Answer(self._number, is_end=True))

    async def _ask(self, context: Context, frame: Asked) -> None:
        kind = _QUESTIONS.get(frame.name)
        if kind is None or context.scope is None:
            raise InternalError(f"an isolated function asked for {frame.name!r}")
        answer = await context.scope.ask(context, msgspec.convert(frame.value, kind))
        self._send(Answer(self._number, value=_told(answer)))

    async def _call(self, context: Context, frame: Asked) -> None:
        scope = context.scope
        if scope is None:
            raise NestedError(InternalError.status, "this function runs where no other function can be called")
        streams = iter(self._streams)
        args = [_argument(one, streams) for one in frame.args]
        kwargs = {name: _argument(one, streams) for name, one in frame.kwargs.items()}
        replies = scope.call(context, frame.name, args, kwargs, streams=frame.what == "stream")
        try:
            async for message in replies:
                self._send(Answer(self._number, value=[packed(message)]))
                if frame.what == "stream":
                    await self.more.wait()
                    self.more.clear()
        finally:
            await replies.aclose()  # type: ignore[attr-defined]  # as `Scope.call` says


class _Pieces:
    """An iterator in a child, as the callee's driver reads it."""

    def __init__(self, call: _Call, slot: int) -> None:
        self._call = call
        self._slot = slot
        self._waiter: asyncio.Future[Packed | None] | None = None

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> Message[bytes]:
        self._waiter = asyncio.get_running_loop().create_future()
        self._call.wants(self._slot)
        item = await self._waiter
        if item is None:
            raise StopAsyncIteration
        return unpacked(item)

    def came(self, item: Packed | None) -> None:
        """Take the requested value from the child; None at the end."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(item)


class PipeScope:
    """The scope of functions in a child: asks the serving process; see `invoker.context.Scope`.

    Args:
        send: Sends a frame to the serving process.

    Attributes:
        carries: Media types that the scope of the running invocation carries in the serving process.
    """

    carries = ACCEPTS

    def __init__(self, send: Callable[[FromChild], object]) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._open: dict[int, _Reply] = {}

    def heard(self, frame: Answer) -> None:
        """Give an answer to the question that has its number; a late answer is dropped."""
        reply = self._open.get(frame.number)
        if reply is not None:
            reply.heard(frame)

    async def call(
        self, caller: Context, name: str, args: Sequence[Argument], kwargs: Mapping[str, Argument], *, streams: bool  # noqa: ARG002 - the serving process knows the caller
    ) -> AsyncIterator[Message[bytes]]:  # fmt: skip
        """Invoke another function in the serving process, and give its result."""
        reply = self._begin([*args, *kwargs.values()])
        what = "stream" if streams else "call"
        given = [_packed(one) for one in args]
        named = {key: _packed(one) for key, one in kwargs.items()}
        self._send(Asked(reply.number, what, name, given, named))
        try:
            while (answer := await reply.next()) is not None:
                yield unpacked(msgspec.convert(answer[0], Packed))
                if streams:
                    self._send(Asked(reply.number, "more"))
        finally:
            self._end(reply)

    def here(
        self, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, streams: bool  # noqa: ARG002 - as `Scope`
    ) -> Iterator[Message[bytes]] | None:  # fmt: skip
        """Return None, since no other function runs in this process."""
        return None

    async def ask(self, caller: Context, question: Any) -> Any:  # noqa: ARG002 - the serving process knows the caller
        """Ask the store through the serving process, and wait for the answer."""
        reply = self._begin([])
        self._send(Asked(reply.number, "ask", type(question).__name__, value=msgspec.to_builtins(question)))
        try:
            return _heard(await reply.next())
        finally:
            self._end(reply)

    def _begin(self, arguments: Sequence[Argument]) -> _Reply:
        streams = [one for one in arguments if not isinstance(one, Message)]
        reply = _Reply(next(self._numbers), streams, self._send)
        self._open[reply.number] = reply
        return reply

    def _end(self, reply: _Reply) -> None:
        del self._open[reply.number]
        reply.close()
        self._send(Asked(reply.number, "drop"))


class _Reply:
    """The answers to one question, and the iterators among its arguments."""

    def __init__(
        self, number: int, streams: list[AsyncIterator[Message[bytes]]], send: Callable[[Any], object]
    ) -> None:
        self.number = number
        self._streams = streams
        self._send = send
        self._came: asyncio.Queue[Answer] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, frame: Answer) -> None:
        if frame.wants >= 0:
            task = asyncio.get_running_loop().create_task(self._advance(frame.wants), name="argument")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._came.put_nowait(frame)

    async def next(self) -> Any:
        """The next result; None at the end."""
        frame = await self._came.get()
        if frame.fault is not None:
            raise raised_by(frame.fault)
        return None if frame.is_end else frame.value

    def close(self) -> None:
        for one in self._tasks:
            one.cancel()

    async def _advance(self, slot: int) -> None:
        """Send the next value of a function's iterator; its exceptions end the call."""
        try:
            message = await anext(self._streams[slot], None)
        except Exception as error:  # noqa: BLE001 - the function's own iterator may raise anything
            self._came.put_nowait(Answer(self.number, fault=fault_of(_failed(error))))
            return
        self._send(Asked(self.number, "piece", args=[] if message is None else [packed(message)], value=slot))


def _failed(error: Exception) -> InvocationError:
    if isinstance(error, InvocationError):
        return error
    made = InternalError(f"an argument of a nested call could not be given: {error}")
    made.__cause__ = error
    return made


def _streams_of(frame: Asked) -> int:
    return sum(one is None for one in (*frame.args, *frame.kwargs.values()))


def _packed(one: Argument) -> Packed | None:
    return packed(one) if isinstance(one, Message) else None


def _argument(one: Packed | None, streams: Iterator[Any]) -> Argument:
    made: Argument = next(streams) if one is None else unpacked(one)
    return made


def _told(answer: Any) -> Any:
    """Convert an answer of the store for the pipe."""
    if isinstance(answer, tuple):
        return ["tuple", [_told(one) for one in answer]]
    if type(answer).__name__ in _ANSWERS:
        return [type(answer).__name__, msgspec.to_builtins(answer)]
    return None


def _heard(value: Any) -> Any:
    """Convert an answer of the store that came over the pipe."""
    if not isinstance(value, list):
        return None
    name, rest = value
    return tuple(_heard(one) for one in rest) if name == "tuple" else msgspec.convert(rest, _ANSWERS[name])
