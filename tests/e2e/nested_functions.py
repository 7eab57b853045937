"""Sync functions that call each other; `tests.e2e.test_nested` serves them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from invoker import Context, function, tee


@function
def square(x: int) -> int:
    return x * x


@function
def cube(x: int, ctx: Context) -> int:
    return x * int(ctx.call("square", x))


@function
def cubes(xs: Iterator[int], ctx: Context) -> Iterator[int]:
    yield from ctx.stream("cube", xs)


class Both(NamedTuple):
    squares: Iterator[int]
    cubes: Iterator[int]


@function
def both(xs: Iterator[int], ctx: Context) -> Both:
    """Two threads of one invocation call at the same time."""
    first, second = tee(xs, 2)
    return Both((ctx.call("square", one) for one in first), (ctx.call("cube", one) for one in second))
