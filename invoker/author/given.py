"""Finds the options of an invocation that were given: only those are passed, so that the others keep their defaults.

The streams of options come before those of the other inputs. A driver opens a body once it is certain for each option
whether it has a value (`Invocation.may_begin`), so no code here waits for a value. A given option becomes an input like
any other: for a request/reply function a constant that is repeated for each item, otherwise a stream of one value
(R-167).
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from invoker.author.spec import FunctionSpec, StreamSpec, Style

_END: Final = object()


def given_sync(spec: FunctionSpec, inputs: Sequence[Iterator[Any]]) -> tuple[tuple[str, ...], list[Iterator[Any]]]:
    """The names and the streams of the inputs that were given.

    Args:
        spec: The spec that `invoker.author.named.bind_options` has returned.
        inputs: One iterator for each of its inputs.
    """
    found: dict[str, Iterator[Any]] = {}
    values: dict[str, Any] = {}
    for one, stream in zip(spec.inputs, inputs, strict=True):
        if not one.is_option:
            found[one.name] = stream
        elif (first := next(stream, _END)) is not _END:
            values[one.name] = first
            found[one.name] = iter((first,)) if one.single else itertools.chain((first,), stream)
    if _is_mapped(spec, tuple(found)):
        found.update((one.name, itertools.repeat(values[one.name])) for one in _constants(spec, found))
    return tuple(found), list(found.values())


async def given_async(
    spec: FunctionSpec, inputs: Sequence[AsyncIterator[Any]]
) -> tuple[tuple[str, ...], list[AsyncIterator[Any]]]:
    """Does the work of `given_sync` for the inputs of an async function."""
    found: dict[str, AsyncIterator[Any]] = {}
    values: dict[str, Any] = {}
    for one, stream in zip(spec.inputs, inputs, strict=True):
        if not one.is_option:
            found[one.name] = stream
        elif (first := await anext(stream, _END)) is not _END:
            values[one.name] = first
            found[one.name] = _Chained(first, None if one.single else stream)
    if _is_mapped(spec, tuple(found)):
        found.update((one.name, _Repeated(values[one.name])) for one in _constants(spec, found))
    return tuple(found), list(found.values())


def _is_mapped(spec: FunctionSpec, names: tuple[str, ...]) -> bool:
    """Whether the number of values of a given input decides how often the function is called."""
    is_mapping = spec.style is Style.REQUEST_REPLY
    return is_mapping and any(one.name in names and not one.single for one in spec.inputs)


def _constants(spec: FunctionSpec, found: dict[str, Any]) -> list[StreamSpec]:
    return [one for one in spec.inputs if one.is_option and one.single and one.name in found]


class _Chained:
    """Gives a value, then the rest of an iterator. A generator would cost a task of the loop if it is not exhausted."""

    __slots__ = ("_first", "_rest")

    def __init__(self, first: Any, rest: AsyncIterator[Any] | None) -> None:
        self._first = first
        self._rest = rest

    def __aiter__(self) -> _Chained:
        return self

    async def __anext__(self) -> Any:
        first, self._first = self._first, _END
        if first is not _END:
            return first
        if self._rest is None:
            raise StopAsyncIteration
        return await anext(self._rest)


class _Repeated:
    """An iterator that gives the same value for ever."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __aiter__(self) -> _Repeated:
        return self

    async def __anext__(self) -> Any:
        return self._value
