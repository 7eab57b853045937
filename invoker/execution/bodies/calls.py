"""Implements `Context.call` and `Context.stream`, in the thread of a sync function and in the task of an async one.

A sync callee of a sync function usually runs in the same thread (`Scope.here`). Otherwise the callee runs on the loop
or in another thread, and the caller waits. Iterators among the arguments are advanced in the thread of the caller,
between its waits, because they are the caller's code and may read the caller's inputs.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from invoker.context import Argument, Context, Scope
from invoker.errors import EncodeError
from invoker.execution.bodies.values import decode_value, encode_argument
from invoker.message import Message

log = logging.getLogger(__name__)

_CLOSE_S = 5.0


class Waits(Protocol):
    """The part of a `Run` that blocks."""

    def wait(self, awaitable: Any) -> Any:
        """Block the calling thread until the loop has run ``awaitable``, and give its result."""


def scope_of(context: Context) -> Scope:
    """The scope by which a function reaches other functions.

    Raises:
        EncodeError: The function runs without a scope.
    """
    if context.scope is None:
        raise EncodeError("this function runs in a place where no other function can be called")
    return context.scope


def call(run: Waits, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call another function, and return its result; blocks this thread."""
    result: Any = None
    for message in _replies(run, caller, name, args, kwargs, streams=False):
        result = decode_value(message)
    return result


def stream(run: Waits, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """Call another function, and give its values as they come; blocks this thread."""
    replies = _replies(run, caller, name, args, kwargs, streams=True)
    try:
        for message in replies:
            yield decode_value(message)
    finally:
        replies.close()  # type: ignore[attr-defined]  # `here` and `_across` return generators


async def acall(caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call another function from the loop."""
    result: Any = None
    async with contextlib.aclosing(_areplies(caller, name, args, kwargs, streams=False)) as replies:
        async for message in replies:
            result = decode_value(message)
    return result


async def astream(caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Call another function from the loop, and give its values as they come."""
    async with contextlib.aclosing(_areplies(caller, name, args, kwargs, streams=True)) as replies:
        async for message in replies:
            yield decode_value(message)


def _areplies(
    caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, streams: bool
) -> Any:  # an AsyncIterator with ``aclose``
    scope = scope_of(caller)
    given = [_async_argument(one, index, scope.carries) for index, one in enumerate(args)]
    named = {key: _async_argument(one, key, scope.carries) for key, one in kwargs.items()}
    return scope.call(caller, name, given, named, streams=streams)


def _async_argument(value: Any, name: int | str, carries: str) -> Argument:
    if hasattr(value, "__anext__"):
        return _encoded_async(value, name, carries)
    return _encoded(value, name, carries) if hasattr(value, "__next__") else encode_argument(value, name, carries)


async def _encoded_async(values: AsyncIterator[Any], name: int | str, carries: str) -> AsyncIterator[Message[bytes]]:
    async for value in values:
        yield encode_argument(value, name, carries)


async def _encoded(values: Iterable[Any], name: int | str, carries: str) -> AsyncIterator[Message[bytes]]:
    for value in values:
        yield encode_argument(value, name, carries)
        await asyncio.sleep(0)  # the iterator never waits, so other tasks get their turn here


def _replies(
    run: Waits, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, streams: bool
) -> Iterator[Message[bytes]]:
    scope = scope_of(caller)
    here = scope.here(caller, name, args, kwargs, streams=streams)
    return _across(run, scope, caller, name, args, kwargs, streams=streams) if here is None else here


def _across(
    run: Waits, scope: Scope, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any],
    *, streams: bool,
) -> Iterator[Message[bytes]]:  # fmt: skip
    """Give the results of a function that runs elsewhere."""
    turns = _Turns(scope.carries)
    given = [turns.argument(one, index) for index, one in enumerate(args)]
    named = {key: turns.argument(one, key) for key, one in kwargs.items()}
    turns.begin = lambda: scope.call(caller, name, given, named, streams=streams)
    try:
        while (turn := run.wait(turns.take())) is not None:
            if isinstance(turn, Message):
                yield turn
            else:
                turn.advance()
    finally:
        turns.close()


class _Advanced:
    """An iterator of the caller that the caller's thread advances, for the callee's driver on the loop."""

    def __init__(self, turns: _Turns, values: Iterator[Any], name: int | str) -> None:
        self._turns = turns
        self._name = name
        self._values = values
        self._item: Message[bytes] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> _Advanced:
        return self

    async def __anext__(self) -> Message[bytes]:
        self._waiter = asyncio.get_running_loop().create_future()
        self._turns.wanted(self)
        await self._waiter
        if self._item is None:
            raise StopAsyncIteration
        return self._item

    def advance(self) -> None:
        """Take the next value; called in the thread of the caller, whose exceptions go to the caller."""
        self._item = None
        for value in self._values:
            self._item = encode_argument(value, self._name, self._turns.carries)
            break

    def told(self) -> None:
        """Let the callee's driver continue, on the loop."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Turns:
    """The turns of a caller's thread and the loop: each `take` brings a result, or an iterator to be advanced."""

    begin: Callable[[], AsyncIterator[Message[bytes]]]

    def __init__(self, carries: str) -> None:
        self.carries = carries
        self._loop: asyncio.AbstractEventLoop | None = None
        self._replies: Any = None
        self._next: asyncio.Task[Message[bytes] | None] | None = None
        self._wanted: deque[_Advanced] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._advanced: _Advanced | None = None
        self._has_iterators = False

    def argument(self, value: Any, name: int | str) -> Argument:
        """Convert an argument to the form that `Scope.call` takes."""
        if not hasattr(value, "__next__"):
            return encode_argument(value, name, self.carries)
        self._has_iterators = True
        return _Advanced(self, value, name)

    def wanted(self, one: _Advanced) -> None:
        """Note that the callee's driver wants the next value of an iterator."""
        self._wanted.append(one)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> Message[bytes] | _Advanced | None:
        """Wait for the next result, or for an iterator that is to be advanced; None at the end."""
        if self._replies is None:
            self._loop = asyncio.get_running_loop()
            self._replies = self.begin()
        if not self._has_iterators:
            return await self._reply()
        if self._advanced is not None:
            self._advanced.told()
            self._advanced = None
        if self._next is None:
            self._next = asyncio.create_task(self._reply())
        if not self._wanted:
            self._waiter = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._next, self._waiter), return_when=asyncio.FIRST_COMPLETED)
        if self._next.done():
            done, self._next = self._next, None
            return done.result()
        self._advanced = self._wanted.popleft()
        return self._advanced

    async def _reply(self) -> Message[bytes] | None:
        async for message in self._replies:
            return message  # type: ignore[no-any-return]  # as `begin` says
        return None

    def close(self) -> None:
        """End the call; returns once it has ended, so that it holds no slot when the caller continues."""
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError, concurrent.futures.CancelledError):  # the loop has closed
            closing = asyncio.run_coroutine_threadsafe(self._close(), self._loop)
            try:
                closing.result(_CLOSE_S)
            except TimeoutError:
                log.warning("a nested call did not close within %s s", _CLOSE_S)

    async def _close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait((self._next,))
        await self._replies.aclose()
