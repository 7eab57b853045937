"""Functions in processes of their own that call others, and are called; `tests.e2e.test_nested` serves them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from invoker import Context, NestedError, function


@function
def pid() -> int:
    return os.getpid()


@function(isolation="process")
def isolated_pid() -> int:
    return os.getpid()


@function
def upto(n: int) -> Iterator[int]:
    yield from range(n)


@function(isolation="process")
def from_child(n: int, ctx: Context) -> list[object]:
    """It calls a function of the serving process, takes a stream, gives one, and hears of an error."""
    try:
        ctx.call("nobody")
    except NestedError as error:
        refused = error.status.name
    squares = ctx.stream("squares", (one for one in range(n)))
    return [ctx.call("pid") != os.getpid(), list(ctx.stream("upto", n)), list(squares), refused]


@function
def squares(xs: Iterator[int]) -> Iterator[int]:
    yield from (x * x for x in xs)


@function
def to_child(n: int, ctx: Context) -> list[object]:
    return [ctx.call("isolated_pid") != os.getpid(), ctx.call("from_child", n)]


@function
def dies_below(n: int, ctx: Context) -> str:
    try:
        return str(ctx.call("dies"))
    except NestedError as error:
        return error.status.name


@function(isolation="process")
def dies() -> None:
    os._exit(3)
