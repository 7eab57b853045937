"""Maps a request/reply function over its inputs: item k of the output is the result for item k of the inputs (R-031).

This is the hot path of most functions, so there is one small loop for each case instead of one loop with cases in it.
Several inputs are zipped: the output ends when any of them does. Nothing is read ahead, and after an exception nothing
more is read (R-033), unless the author asked for ``concurrency``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from types import AsyncGeneratorType, CoroutineType, GeneratorType, NoneType
from typing import Any, Final

from invoker.errors import FunctionError, reason_of
from invoker.message import Message, Output

Wait = Callable[[Awaitable[Any]], Any]

PLAIN: set[type[Any]] = {NoneType, bool, int, float, str, bytes, dict, list, tuple, Message, Output}
"""Types whose instances are values and cannot be awaited; types are added when they first occur."""

_MOST_PLAIN: Final = 1000
"""The most remembered types, so that a function that makes new types all the time cannot fill the memory (R-011)."""

_END: Final = object()


def map_sync(call: Callable[..., Any], inputs: Sequence[Iterator[Any]], wait: Wait, *, ignores: bool) -> Iterator[Any]:
    """Map a sync function.

    Args:
        call: Takes one value of each input.
        inputs: The inputs; if there are several, each call takes one value of each.
        wait: Gives the result of an awaitable that the function returned (R-034).
        ignores: Whether the function has no parameters and is called once for each message of the only input.
    """
    if ignores:
        return _each_ignored(call, inputs[0], wait)
    if len(inputs) == 1:
        return _each(call, inputs[0], wait)
    return _each_zipped(call, inputs, wait)


def map_async(call: Callable[..., Any], inputs: Sequence[AsyncIterator[Any]], *, ignores: bool) -> AsyncIterator[Any]:
    """Map an async function, one call after the other, as `map_sync` does for a sync one."""
    if ignores:
        return _each_async(lambda _: call(), inputs[0])
    if len(inputs) == 1:
        return _each_async(call, inputs[0])
    return _each_async(lambda values: call(*values), _zip_async(inputs))


async def gather_map(
    call: Callable[..., Any], inputs: Sequence[AsyncIterator[Any]], concurrency: int, *, ignores: bool
) -> AsyncIterator[Any]:
    """Map an async function with overlapping calls; results keep the order of the inputs (R-035).

    At most ``concurrency`` calls have begun whose result is not yet read; so a slow reader of results also stops the
    reading of inputs. The tasks belong to this generator: closing it cancels and awaits them.
    """
    values = _zip_async(inputs)
    running: deque[asyncio.Task[Any]] = deque()
    reading: asyncio.Task[Any] | None = None
    is_ended = False
    try:
        while True:
            if reading is None and not is_ended and len(running) < concurrency:
                reading = asyncio.ensure_future(_next(values))
            if running and running[0].done():
                yield running.popleft().result()
                continue
            awaited = [*([running[0]] if running else []), *([reading] if reading else [])]
            if not awaited:
                return
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if reading is not None and reading.done():
                taken, reading = reading.result(), None
                if taken is _END:
                    is_ended = True
                else:
                    running.append(asyncio.ensure_future(_guarded(call, () if ignores else taken)))
    finally:
        left = [*running, *([reading] if reading else [])]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def is_plain(value: Any) -> bool:
    """Whether a value can be sent as it is and need not be awaited first.

    Raises:
        TypeError: The value is a generator, which a request/reply function cannot return.
    """
    kind = type(value)
    if kind in PLAIN:
        return True
    if inspect.isawaitable(value):
        return False
    if kind is GeneratorType or kind is AsyncGeneratorType:
        name = "AsyncIterator" if kind is AsyncGeneratorType else "Iterator"
        raise TypeError(
            f"a request/reply function returned a generator; annotate its parameter and its result {name}[...], "
            "or decorate it with @function(style='streaming')"
        )
    if len(PLAIN) < _MOST_PLAIN:
        PLAIN.add(kind)
    return True


def _each(call: Callable[[Any], Any], values: Iterator[Any], wait: Wait) -> Iterator[Any]:
    plain = PLAIN
    for value in values:
        result = call(value)
        if type(result) in plain or is_plain(result):
            yield result
        else:
            yield wait(result)


def _each_ignored(call: Callable[[], Any], values: Iterator[Any], wait: Wait) -> Iterator[Any]:
    plain = PLAIN
    for _ in values:
        result = call()
        if type(result) in plain or is_plain(result):
            yield result
        else:
            yield wait(result)


def _each_zipped(call: Callable[..., Any], inputs: Sequence[Iterator[Any]], wait: Wait) -> Iterator[Any]:
    plain = PLAIN
    for values in zip(*inputs, strict=False):
        result = call(*values)
        if type(result) in plain or is_plain(result):
            yield result
        else:
            yield wait(result)


async def _each_async(call: Callable[[Any], Any], values: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for value in values:
        result = call(value)
        if type(result) is CoroutineType or not is_plain(result):
            yield await result
        else:
            yield result


async def _zip_async(inputs: Sequence[AsyncIterator[Any]]) -> AsyncIterator[tuple[Any, ...]]:
    readers = [aiter(one) for one in inputs]
    if not readers:
        return
    while True:
        values = []
        for reader in readers:
            value = await anext(reader, _END)
            if value is _END:
                return
            values.append(value)
        yield tuple(values)


async def _next(values: AsyncIterator[Any]) -> Any:
    return await anext(values, _END)


async def _guarded(call: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    try:
        result = call(*values)
        return result if is_plain(result) else await result
    except (SystemExit, KeyboardInterrupt) as error:
        # a task that raises these ends the loop, and the process with it.
        raise FunctionError(why=reason_of(error)) from error
