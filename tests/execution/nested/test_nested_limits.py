"""How deep functions may call each other, and what becomes of a call that finds no room (E-129)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from invoker import Context, NestedError, Status, function
from invoker.core.steps import Open
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError
from invoker.execution.nested.inline import Inline
from tests.execution.nested.world import World

Make = Callable[..., World]


def down(n: int, ctx: Context) -> int:
    return 0 if n == 0 else 1 + int(ctx.call("down", n - 1))


async def adown(n: int, ctx: Context) -> int:
    return 0 if n == 0 else 1 + int(await ctx.call("adown", n - 1))


def ping(n: int, ctx: Context) -> int:
    return 0 if n == 0 else 1 + int(ctx.call("pong", n - 1))


async def pong(n: int, ctx: Context) -> int:
    return 0 if n == 0 else 1 + int(await ctx.call("ping", n - 1))


@pytest.mark.parametrize("name", ["down", "adown", "ping", "pong"])
async def test_E129_functions_call_themselves_and_each_other(world: Make, name: str) -> None:
    """16 calls may be within each other; the error of the next one names them all."""
    made = world(down, adown, ping, pong)
    assert await made.run(name, 16) == [16]
    with pytest.raises(InvocationError) as caught:
        await made.run(name, 17)
    assert caught.value.status is Status.RESOURCE_EXHAUSTED
    assert "exceed the limit of 16 levels" in str(caught.value)
    assert str(caught.value).count(" > ") == 17


async def test_E129_the_operator_says_how_deep(world: Make) -> None:
    made = world(down, depth=2)
    assert await made.run("down", 2) == [2]
    with pytest.raises(InvocationError, match="down > down > down > down"):
        await made.run("down", 3)


def once(x: int, ctx: Context) -> str:
    try:
        return str(ctx.call("leaf", x))
    except NestedError as error:
        return f"{error.status.name}: {error.detail}"


async def aonce(x: int, ctx: Context) -> str:
    try:
        return str(await ctx.call("leaf", x))
    except NestedError as error:
        return f"{error.status.name}: {error.detail}"


def leaf(x: int) -> int:
    return x + 1


@pytest.mark.parametrize("name", ["once", "aonce"])
async def test_E129_a_call_that_finds_no_slot_fails_at_once(world: Make, name: str) -> None:
    """The parent holds the only slot, so waiting for it would last for ever."""
    made = world(once, aonce, leaf, max_invocations=1)
    (text,) = await made.run(name, 1)
    assert text.startswith("RESOURCE_EXHAUSTED: Invoker: Limit Exceeded: 1 invocation is running")
    roomy = world(once, aonce, leaf, max_invocations=2)
    assert await roomy.run(name, 1) == ["2"]


async def test_E129_a_call_that_finds_no_thread_fails_at_once(world: Make) -> None:
    """An async function needs a thread of the pool for its sync callee."""
    begun, release = threading.Event(), threading.Event()

    def busy(x: int) -> int:
        begun.set()
        release.wait()
        return x

    made = world(aonce, leaf, busy, threads=1)
    first = asyncio.create_task(made.run("busy", 1))
    assert await asyncio.to_thread(begun.wait, 5)
    (text,) = await made.run("aonce", 1)
    assert "RESOURCE_EXHAUSTED" in text
    assert "all 1 threads for sync functions are busy" in text
    release.set()
    assert await first == [1]


@pytest.mark.timeout(20)
async def test_E129_256_callers_of_a_sync_function_cannot_block_each_other(world: Make) -> None:
    """All slots are taken by callers that are at the call at the same time: each gets its result."""
    many = 256
    together = threading.Barrier(many)

    def parent(x: int, ctx: Context) -> int:
        together.wait()
        return int(ctx.call("leaf", x))

    made = world(parent, leaf, threads=many)
    results = await asyncio.gather(*(made.run("parent", one) for one in range(many)))
    assert results == [[one + 1] for one in range(many)]
    assert made.engine.counters.opened == 2 * many


async def test_E129_nested_calls_are_counted_and_know_their_caller(world: Make) -> None:
    made = world(once, leaf)
    await made.run("once", 1)
    child, parent = made.ended
    assert (child.function.spec.name, parent.function.spec.name) == ("leaf", "once")
    assert child.context.caller is parent.context
    assert child.id != parent.id
    assert (child.frames_in, child.frames_out) == (1, 1)
    assert made.engine.counters.opened == 2


async def test_E129_collecting_is_bounded(world: Make) -> None:
    """`call` collects no more than an invocation may hold unread; `stream` has no such bound."""

    def much() -> Any:
        for _ in range(70):
            yield bytes(1024 * 1024)

    def collects(x: int, ctx: Context) -> int:
        return len(ctx.call("much"))

    async def acollects(x: int, ctx: Context) -> int:
        return len(await ctx.call("much"))

    def streams(x: int, ctx: Context) -> int:
        return sum(len(one) for one in ctx.stream("much"))

    made = world(much, collects, acollects, streams)
    for name in ("collects", "acollects"):
        with pytest.raises(InvocationError, match=r"take the values one by one with Context\.stream"):
            await made.run(name, 1)
    assert await made.run("streams", 1) == [70 * 1024 * 1024]


@function(max_calls=2)
def thrice(n: int, ctx: Context) -> str:
    if n == 0:
        return "done"
    try:
        return str(ctx.call("thrice", n - 1))
    except NestedError as error:
        return error.status.name


@function(max_calls=2)
async def athrice(n: int, ctx: Context) -> str:
    if n == 0:
        return "done"
    try:
        return str(await ctx.call("athrice", n - 1))
    except NestedError as error:
        return error.status.name


@pytest.mark.parametrize("name", ["thrice", "athrice"])
async def test_E129_a_call_that_finds_no_place_in_its_function_fails_at_once(world: Make, name: str) -> None:
    """`max_calls` counts the callers, too; every place is free again afterwards."""
    made = world(thrice, athrice)
    for _ in range(3):
        assert await made.run(name, 1) == ["done"]
        assert await made.run(name, 2) == ["RESOURCE_EXHAUSTED"]


async def test_E129_a_deaf_callee_with_a_time_limit_does_not_hold_up_its_caller(world: Make) -> None:
    """It has a thread of its own, so the caller hears of the limit though the function does not return."""
    release = threading.Event()

    @function(timeout_s=0.1)
    def deaf() -> int:
        release.wait()
        return 1

    def caller(x: int, ctx: Context) -> str:
        try:
            return str(ctx.call("deaf"))
        except NestedError as error:
            return error.status.name

    made = world(caller, deaf)
    assert await made.run("caller", 1) == ["DEADLINE_EXCEEDED"]
    release.set()


async def test_E129_an_inline_callee_ends_when_its_own_time_is_over(world: Make) -> None:
    """Its session gave it a limit that is shorter than that of its caller; it is noticed at the next value."""

    def endless() -> Iterator[int]:
        while True:
            yield 1

    made = world(endless)
    opened = made.engine.open(Open("n", "endless", timeout_s=0.05))
    body = Inline(made.driver, opened, (), {})
    with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
        for _ in body.run():
            pass


async def test_E129_an_inline_callee_can_be_stopped_from_outside(world: Make) -> None:
    """As a clean-up of a session stops what runs in it: the next value is not given any more."""

    def endless() -> Iterator[int]:
        while True:
            yield 1

    made = world(endless)
    opened = made.engine.open(Open("n", "endless", timeout_s=60))
    results = Inline(made.driver, opened, (), {}).run()
    next(results)
    assert opened.limit is not None
    opened.limit.stop(Cancelled("cleaned up"))
    with pytest.raises(Cancelled, match="cleaned up"):
        next(results)
