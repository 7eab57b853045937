"""Turns the return value of a streaming function into one iterator for each output.

The return annotation determines the expected shape (`ResultShape`); the result may still differ, because annotations
are not enforced. A result of the wrong shape is a TypeError of the call, with the fix in its text. If each value is for
several outputs, `parted` yields its parts one by one, each as an `Output`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any, Final

from invoker.author.spec import WANTED, FunctionSpec, ResultShape
from invoker.context import Context
from invoker.errors import EncodeError
from invoker.message import Output

Wait = Callable[[Awaitable[Any]], Any]

_END: Final = object()


def sync_results(spec: FunctionSpec, result: Any, wait: Wait) -> Sequence[Iterator[Any]]:
    """The outputs of a sync function, one iterator each.

    Args:
        spec: The spec of the function.
        result: The value that the call returned.
        wait: Gives the result of an awaitable; async iterators are read through it too.

    Raises:
        TypeError: The result does not have the shape that the signature declares.
    """
    if type(result) is GeneratorType and spec.call.result is ResultShape.STREAM:
        return (result,)
    if inspect.isawaitable(result) and not hasattr(result, "__next__"):
        result = wait(result)
    shape = _shape(spec, result)
    if shape is ResultShape.STREAM:
        return (_sync_stream(spec, result, wait),)
    if shape is ResultShape.SEVERAL:
        _check_count(spec, result)
        return tuple(_sync_stream(spec, one, wait) for one in result)
    return () if shape is ResultShape.NOTHING else (iter((result,)),)


async def async_results(spec: FunctionSpec, result: Any) -> Sequence[AsyncIterator[Any]]:
    """The outputs of an async function, as `sync_results` returns those of a sync one."""
    if inspect.isawaitable(result):
        result = await result
    shape = _shape(spec, result)
    if shape is ResultShape.STREAM:
        return (_async_stream(spec, result),)
    if shape is ResultShape.SEVERAL:
        _check_count(spec, result)
        return tuple(_async_stream(spec, one) for one in result)
    return () if shape is ResultShape.NOTHING else (_values((result,)),)


def parted(spec: FunctionSpec, values: Iterator[Any], context: Context) -> Iterator[Output]:
    """Yield the parts of each value with their outputs: of tuples by position, of dicts by name.

    A function that takes ``output_names`` may leave out the unwanted parts, also in a tuple (G-060).

    Raises:
        EncodeError: A value does not have the declared parts.
    """
    try:
        for value in values:
            yield from _parts(spec, value, context)
    finally:
        if (close := getattr(values, "close", None)) is not None:
            close()


async def parted_async(spec: FunctionSpec, values: AsyncIterator[Any], context: Context) -> AsyncIterator[Output]:
    """Does the work of `parted` for the values of an async generator."""
    try:
        async for value in values:
            for one in _parts(spec, value, context):
                yield one
    finally:
        if (close := getattr(values, "aclose", None)) is not None:
            await close()


def wanted(spec: FunctionSpec, context: Context) -> tuple[str, ...]:
    """The names of the wanted outputs, each once, in the function's own order.

    The order of the names in the request is ignored. So a tuple of the wanted outputs is a tuple of all outputs if all
    are wanted.
    """
    names = [one.name for one in spec.parts or spec.outputs]
    if spec.parts:  # the only output carries all parts
        return tuple(names)
    run = context.run
    if run is None:
        return tuple(names)
    return tuple(names[one.index] if one.index < len(names) else one.name for one in run.outputs if one.is_wanted)


def _parts(spec: FunctionSpec, value: Any, context: Context) -> Iterator[Output]:
    if type(value) is Output:
        return iter((value,))
    if isinstance(value, Mapping):
        return _by_name(spec, value, context)
    return _by_position(spec, value, context)


def _by_name(spec: FunctionSpec, value: Mapping[Any, Any], context: Context) -> Iterator[Output]:
    keys = spec.call.parts
    for key in value:
        if key not in keys:
            raise EncodeError(f"'{spec.name}' returned a dict with {key!r}; its outputs are {', '.join(keys)}")
    left = {one.name for key, one in zip(keys, spec.outputs, strict=True) if key not in value}
    if left and (missing := [name for name in wanted(spec, context) if name in left]):
        raise EncodeError(f"'{spec.name}' returned a dict without its output '{missing[0]}'")
    return (Output(index, value[key]) for index, key in enumerate(keys) if key in value)


def _by_position(spec: FunctionSpec, value: Any, context: Context) -> Iterator[Output]:
    count = len(spec.outputs)
    is_bare = not hasattr(value, "_fields") if count == 1 else not isinstance(value, tuple | list)
    values = (value,) if is_bare else value
    indexes: Sequence[int] = range(count)
    names = wanted(spec, context) if _takes_names(spec) else ()
    if names and len(values) == len(names) < count:
        indexes = [index for index, one in enumerate(spec.outputs) if one.name in names]
    elif len(values) != count:
        raise _not_parts(spec, value)
    return map(Output, indexes, values)


def _takes_names(spec: FunctionSpec) -> bool:
    return any(slot.index == WANTED for slot in spec.call.slots)


def _not_parts(spec: FunctionSpec, value: Any) -> EncodeError:
    met = f"a {type(value).__name__} of {len(value)}" if isinstance(value, tuple | list) else type(value).__name__
    names = [one.name for one in spec.outputs]
    return EncodeError(
        f"'{spec.name}' returned {met} for its outputs {', '.join(names)}; "
        f"return a tuple of {len(names)}, or a dict by name"
    )


def _shape(spec: FunctionSpec, result: Any) -> ResultShape:
    expected = spec.call.result
    if expected is not ResultShape.UNKNOWN:
        return expected
    if result is None:
        return ResultShape.NOTHING
    if _is_iterator(result):
        return ResultShape.STREAM
    if isinstance(result, tuple) and result and all(_is_iterator(one) for one in result):
        return ResultShape.SEVERAL
    return ResultShape.VALUE


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
    """Read an async iterator from a thread; each item is fetched on the loop."""
    try:
        while (value := wait(anext(values, _END))) is not _END:
            yield value
    finally:
        if (close := getattr(values, "aclose", None)) is not None:
            wait(close())


async def _values(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value
