"""The sources of the values of inputs: sync or async iterables, one for each input, or one of pairs of index and value.

A feed belongs to its call: when the call ends the given iterators are closed, so that the ``finally`` of a generator
runs at once and not when the garbage collector runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from invoker.message import Message

T = TypeVar("T")

Values = Iterable[Any] | AsyncIterable[Any]
"""The values of one input, each a plain value or a `Message`."""
Inputs = Sequence[Values]
"""One iterable for each input."""
Pairs = Iterable[tuple[int, Any]] | AsyncIterable[tuple[int, Any]]
"""Pairs of the input's index and a value, in the order in which they are sent."""

_END = object()


def check_inputs(inputs: Inputs) -> None:
    """Refuse inputs that are not one iterable for each input; the error has the fix.

    Raises:
        TypeError: There is a plain value in place of an iterable of values.
    """
    if isinstance(inputs, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(inputs, Sequence):
        raise TypeError(f"inputs is a {type(inputs).__name__}; give one iterable an input, such as [values]")
    for index, values in enumerate(inputs):
        plain = isinstance(values, (str, bytes, bytearray, memoryview, Mapping, Message))
        if plain or not isinstance(values, (Iterable, AsyncIterable)):
            raise TypeError(f"input {index} is a {type(values).__name__}; give an iterable of values, such as [value]")


async def iterate(values: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[T, None]:
    """Iterate over a sync or async iterable, and close the iterator at the end, however it ended."""
    if isinstance(values, AsyncIterable):
        waiting = aiter(values)
        try:
            async for value in waiting:
                yield value
        finally:
            await close(waiting)
    else:
        iterator = iter(values)
        try:
            for value in iterator:
                yield value
        finally:
            _close_sync(iterator)


def in_turn(feeds: Sequence[AsyncGenerator[T, None]], first: Collection[int]) -> list[AsyncGenerator[T, None]]:
    """Join the feeds with the indexes in ``first`` into one, which comes first; the other feeds follow."""
    ahead = [feeds[index] for index in first if index < len(feeds)]
    if not ahead:
        return list(feeds)
    sent = asyncio.Event()
    return [_ahead(ahead, sent), *(_behind(one, sent) for one in feeds if one not in ahead)]


async def _ahead(feeds: Sequence[AsyncGenerator[T, None]], sent: asyncio.Event) -> AsyncGenerator[T, None]:
    async with contextlib.AsyncExitStack() as stack:
        for feed in feeds:
            await stack.enter_async_context(aclosing(feed))
        for feed in feeds:
            async for one in feed:
                yield one
        sent.set()


async def _behind(feed: AsyncGenerator[T, None], sent: asyncio.Event) -> AsyncGenerator[T, None]:
    async with aclosing(feed):
        await sent.wait()
        async for one in feed:
            yield one


async def close(iterator: AsyncIterator[Any]) -> None:
    """Close an iterator that can be closed."""
    aclose = getattr(iterator, "aclose", None)
    if aclose is not None:
        await aclose()


async def pull(values: Iterable[T]) -> AsyncGenerator[T, None]:
    """Iterate an iterable that blocks, in a daemon thread of its own that is never ahead of its reader.

    A thread that blocks in ``next()`` cannot be stopped: it ends when that call returns, and delays neither the loop
    nor the end of the process.
    """
    loop = asyncio.get_running_loop()
    wanted: queue.SimpleQueue[asyncio.Future[Any] | None] = queue.SimpleQueue()  # holds at most one future, and the end
    threading.Thread(target=_serve, args=(loop, values, wanted), name="invoker-input", daemon=True).start()
    try:
        while True:
            future: asyncio.Future[Any] = loop.create_future()
            wanted.put(future)
            if (value := await future) is _END:
                return
            yield value
    finally:
        wanted.put(None)


def _serve(
    loop: asyncio.AbstractEventLoop, values: Iterable[Any], wanted: queue.SimpleQueue[asyncio.Future[Any] | None]
) -> None:
    iterator = None
    try:
        while (future := wanted.get()) is not None:
            result: object = _END
            error: BaseException | None = None
            try:
                iterator = iter(values) if iterator is None else iterator
                result = next(iterator, _END)
            except BaseException as caught:  # noqa: BLE001 - the caller's iterable; its error goes to the caller
                error = caught
            with contextlib.suppress(RuntimeError):  # the loop was closed while next() blocked
                loop.call_soon_threadsafe(_resolve, future, result, error)
            del future, result, error
    finally:
        if iterator is not None:
            _close_sync(iterator)


def _resolve(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return  # the reader is gone
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _close_sync(iterator: object) -> None:
    closing = getattr(iterator, "close", None)
    # Only iterators with the methods of a generator are closed: an open file is an iterator too, but it belongs to the
    # caller.
    if closing is not None and hasattr(iterator, "throw"):
        closing()
