"""Wrappers of every kind around functions of every kind: the outermost layer decides how a callable runs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker.author.reader import read
from invoker.author.spec import ResultShape
from invoker.testing import Harness


def wrapped(fn: Any) -> Any:
    """A plain function that hands on what it is given."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def spread(fn: Any) -> Any:
    """A coroutine function around anything, which gives a list."""

    @functools.wraps(fn)
    async def wrapper(x: int) -> Any:
        assert asyncio.get_running_loop()
        return await _listed(fn(x))

    return wrapper


def again(fn: Any) -> Any:
    """A generator around anything."""

    @functools.wraps(fn)
    def wrapper(x: int) -> Any:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()  # it may block, so it is in a thread
        yield from asyncio.run(_listed(fn(x)))

    return wrapper


def again_async(fn: Any) -> Any:
    """An async generator around anything."""

    @functools.wraps(fn)
    async def wrapper(x: int) -> Any:
        for one in await _listed(fn(x)):
            yield one

    return wrapper


def blocking(fn: Any) -> Any:
    """A plain function around anything, which waits for it."""

    @functools.wraps(fn)
    def wrapper(x: int) -> Any:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return asyncio.run(_listed(fn(x)))

    return wrapper


class Held:
    """A wrapper that is an object."""

    def __init__(self, fn: Any) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    async def __call__(self, x: int) -> Any:
        return await _listed(self.fn(x))


async def _listed(given: Any) -> list[int]:
    """What any kind of function gives, as a list."""
    given = await given if hasattr(given, "__await__") else given
    if hasattr(given, "__aiter__"):
        return [one async for one in given]
    return list(given) if hasattr(given, "__iter__") else [given]


def one_value(x: int) -> int:
    return x


async def one_async(x: int) -> int:
    return x


def some(x: int) -> Iterator[int]:
    yield x


async def some_async(x: int) -> AsyncIterator[int]:
    yield x


async def bare_async(x):  # type: ignore[no-untyped-def]
    return x


LAYERS: dict[str, tuple[Any, bool]] = {
    "plain": (wrapped, False), "coroutine": (spread, True), "generator": (again, False),
    "async generator": (again_async, True), "object": (Held, True),
}  # fmt: skip
"""Layers, and whether they run on the loop whatever they are around."""


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("fn", [one_value, one_async, some, some_async], ids=lambda one: one.__name__)
async def test_the_outermost_layer_decides_the_kind(fn: Any, layer: str) -> None:
    """Whatever it is around, and whatever that is annotated to return."""
    make, is_async = LAYERS[layer]
    made = make(fn)
    spec = read(made)
    if layer != "plain":
        assert spec.is_async is is_async
    if layer in ("generator", "async generator"):
        assert spec.call.result is ResultShape.STREAM
    found = await Harness(made, check_outputs=False).ainvoke([7])
    assert found.error is None
    assert found.values() in ([7], [[7]])


@pytest.mark.parametrize("twice", [wrapped, again, again_async, spread])
async def test_layers_around_layers(twice: Any) -> None:
    """A plain one around another kind gives what that gives."""
    for made in (
        wrapped(twice(one_value)),
        wrapped(wrapped(twice(one_async))),
        functools.partial(wrapped(twice(some))),
    ):
        found = await Harness(made, check_outputs=False).ainvoke([7])
        assert found.values() in ([7], [[7]])


@pytest.mark.parametrize("fn", [one_async, bare_async], ids=lambda one: one.__name__)
async def test_a_plain_function_around_a_coroutine_function_does_not_hold_the_loop(fn: Any) -> None:
    """It runs in a thread, where it may block, and what it returns is awaited if need be."""
    assert not read(wrapped(fn)).is_async
    assert (await Harness(wrapped(fn)).ainvoke([7])).values() == [7]
    assert (await Harness(blocking(fn), check_outputs=False).ainvoke([7])).values() == [[7]]
