"""Turns what a streaming function's call handed back into one iterator for each output.

The return annotation says what to expect (`Result`); what comes may still differ, because annotations are promises of
the author. A result that cannot be right is a TypeError of the call, with the fix in its text.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from invoker.shape import FunctionSpec, Result

__all__ = ["async_results", "sync_results"]

Wait = Callable[[Awaitable[Any]], Any]

_END: Final = object()


def sync_results(spec: FunctionSpec, result: Any, wait: Wait) -> Sequence[Iterator[Any]]:
    """Give the outputs of a sync function.

    Args:
        spec: What the signature promises.
        result: Of the call.
        wait: Gives the result of an awaitable; async iterators are read through it too.

    Raises:
        TypeError: The result is not what the signature promises.
    """
    if inspect.isawaitable(result) and not hasattr(result, "__next__"):
        result = wait(result)
    shape = _shape(spec, result)
    if shape is Result.STREAM:
        return (_sync_stream(spec, result, wait),)
    if shape is Result.SEVERAL:
        _check_count(spec, result)
        return tuple(_sync_stream(spec, one, wait) for one in result)
    return () if shape is Result.NOTHING else (iter((result,)),)


async def async_results(spec: FunctionSpec, result: Any) -> Sequence[AsyncIterator[Any]]:
    """Give the outputs of an async function; the twin of `sync_results`."""
    if inspect.isawaitable(result):
        result = await result
    shape = _shape(spec, result)
    if shape is Result.STREAM:
        return (_async_stream(spec, result),)
    if shape is Result.SEVERAL:
        _check_count(spec, result)
        return tuple(_async_stream(spec, one) for one in result)
    return () if shape is Result.NOTHING else (_values((result,)),)


def _shape(spec: FunctionSpec, result: Any) -> Result:
    expected = spec.call.result
    if expected is not Result.UNKNOWN:
        return expected
    if result is None:
        return Result.NOTHING
    if _is_iterator(result):
        return Result.STREAM
    if isinstance(result, tuple) and result and all(_is_iterator(one) for one in result):
        return Result.SEVERAL
    return Result.VALUE


def _is_iterator(value: Any) -> bool:
    return hasattr(value, "__next__") or hasattr(value, "__anext__")


def _check_count(spec: FunctionSpec, result: Any) -> None:
    if not isinstance(result, tuple | list):
        raise TypeError(f"'{spec.name}' returned a {type(result).__name__}; it promises a tuple of iterators")
    if not spec.open_outputs and len(result) != len(spec.outputs):
        raise TypeError(f"'{spec.name}' returned {len(result)} iterators; it promises {len(spec.outputs)}")


def _not_a_stream(spec: FunctionSpec, result: Any) -> TypeError:
    what = "None" if result is None else f"a {type(result).__name__}"
    return TypeError(
        f"'{spec.name}' returned {what} where it promises an iterator; return one, or annotate what it returns"
    )


def _sync_stream(spec: FunctionSpec, result: Any, wait: Wait) -> Iterator[Any]:
    if hasattr(result, "__iter__") and not isinstance(result, str | bytes):
        return iter(result)
    if hasattr(result, "__aiter__"):
        return _waited(aiter(result), wait)
    raise _not_a_stream(spec, result)


def _async_stream(spec: FunctionSpec, result: Any) -> AsyncIterator[Any]:
    if hasattr(result, "__aiter__"):
        return aiter(result)
    if hasattr(result, "__iter__") and not isinstance(result, str | bytes):
        return _values(result)
    raise _not_a_stream(spec, result)


def _waited(values: AsyncIterator[Any], wait: Wait) -> Iterator[Any]:
    """Read an async iterator from a thread, at the price of a hop for each item."""
    try:
        while (value := wait(anext(values, _END))) is not _END:
            yield value
    finally:
        if (close := getattr(values, "aclose", None)) is not None:
            wait(close())


async def _values(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value
