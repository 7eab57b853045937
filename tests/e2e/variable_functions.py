"""Tools for tests/e2e/test_shared_state.py."""

from __future__ import annotations

import os
import time

from invoker import Context, VariableError, function


@function
def add(step: int, ctx: Context) -> list[int]:
    """Add to the variable ``sum``, and tell it and the process."""
    total = ctx.variables.get("sum", 0) + step
    ctx.variables.set("sum", total)
    return [total, os.getpid()]


@function(isolation="process")
def add_apart(step: int, ctx: Context) -> list[int]:
    """The same in a child process."""
    return add(step, ctx)


@function(isolation="process")
async def add_apart_async(step: int, ctx: Context) -> list[int]:
    """The same in an async function there; it also lists and deletes."""
    total = await ctx.variables.get("sum", 0) + step
    await ctx.variables.set("sum", total, tags={"apart": "yes"})
    await ctx.variables.delete("missing")
    assert await ctx.variables.list("s", tags=["apart"]) == ["sum"]
    return [total, os.getpid()]


@function(isolation="process")
def misname(ctx: Context, name: str = "") -> str:
    """What a name that is none gives there."""
    try:
        ctx.variables.set(name, 1)
    except VariableError as error:
        return error.code
    return ""


@function
def add_slowly() -> None:
    """Keep the session in use for a while."""
    time.sleep(1)


@function
def echo(x: int) -> int:
    """It needs no store."""
    return x
