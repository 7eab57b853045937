"""A nested call ends with its caller, has its deadline and metadata, and tells its errors (E-129)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from invoker import Context, InputCancelled, NestedError, Status, StatusError, StopInvocation
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError
from tests.execution.nested.world import World

Make = Callable[..., World]


class Seen:
    """What functions of a test have seen, and when."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.left = threading.Event()
        self.what: list[Any] = []


def children(seen: Seen) -> list[Any]:
    """A sync and an async function that go on for ever, and say when they are left."""

    def endless() -> Iterator[int]:
        try:
            while True:
                seen.begun.set()
                yield 1
        finally:
            seen.left.set()

    async def aendless() -> AsyncIterator[int]:
        try:
            seen.begun.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            seen.left.set()

    return [endless, aendless]


def parents(seen: Seen) -> list[Any]:
    def parent(name: str, ctx: Context) -> int:
        try:
            return sum(ctx.stream(name))
        except StopInvocation as stop:
            seen.what.append(stop)
            raise

    async def aparent(name: str, ctx: Context) -> int:
        return sum([one async for one in ctx.stream(name)])

    return [parent, aparent]


PAIRS = [("parent", "endless"), ("parent", "aendless"), ("aparent", "endless"), ("aparent", "aendless")]


@pytest.mark.parametrize(("parent", "child"), PAIRS)
async def test_E129_a_cancel_reaches_the_callee(world: Make, parent: str, child: str) -> None:
    """The peer is gone: the callee is left, and its own ending is a cancel."""
    seen = Seen()
    made = world(*children(seen), *parents(seen))
    running = asyncio.create_task(made.run(parent, child))
    assert await asyncio.to_thread(seen.begun.wait, 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(seen.left.wait, 5)
    assert await made.driver.left(5)
    ended = {one.function.spec.name: one.error for one in made.ended}
    assert isinstance(ended[child], Cancelled)
    assert isinstance(ended[parent], Cancelled)


@pytest.mark.parametrize(("parent", "child"), PAIRS)
async def test_E129_the_deadline_of_the_caller_holds_for_the_callee(world: Make, parent: str, child: str) -> None:
    seen = Seen()
    made = world(*children(seen), *parents(seen))
    with pytest.raises(InvocationError) as caught:
        await made.run(parent, child, deadline=time.monotonic() + 0.1)
    assert caught.value.status is Status.DEADLINE_EXCEEDED
    assert await asyncio.to_thread(seen.left.wait, 5)
    assert await made.driver.left(5)
    ended = {one.function.spec.name: one for one in made.ended}
    assert ended[child].context.deadline == ended[parent].context.deadline


@pytest.mark.parametrize("child", ["endless", "aendless"])
async def test_E129_a_callee_looks_at_the_deadline_itself(world: Make, child: str) -> None:
    """Also where nobody else does yet: the callee ends, and its caller is told why."""
    seen = Seen()
    made = world(*children(seen), *parents(seen))
    with pytest.raises(NestedError) as caught:
        await made.result(made.whole("parent", child, deadline=time.monotonic() + 0.2))
    assert caught.value.status is Status.DEADLINE_EXCEEDED
    ended = {one.function.spec.name: one.error for one in made.ended}
    assert isinstance(ended[child], DeadlineExceeded)


async def test_E129_a_deaf_whole_caller_is_stopped_at_the_callees_next_value(world: Make) -> None:
    """A call in a thread of its own: its peer goes while a callee runs in that thread; both are left."""
    seen = Seen()
    made = world(*children(seen), *parents(seen))
    call = made.whole("parent", "endless")
    assert await asyncio.to_thread(seen.begun.wait, 5)
    call.outlet.gone = True
    with pytest.raises(InvocationError):
        await made.result(call)
    assert seen.left.is_set()
    assert [type(one) for one in seen.what] == [StopInvocation]


async def test_E129_a_whole_caller_gets_what_runs_on_the_loop(world: Make) -> None:
    async def child(x: int) -> int:
        await asyncio.sleep(0)
        return x * 2

    def caller(x: int, ctx: Context) -> int:
        return int(ctx.call("child", x)) + 1

    made = world(caller, child)
    assert await made.result(made.whole("caller", 4)) == [9]


@pytest.mark.parametrize("parent", ["parent", "aparent"])
async def test_E129_a_drain_lets_a_running_function_call(world: Make, parent: str) -> None:
    """Calls that come during the drain are refused, but not those of functions that were admitted before."""
    begun, goes = threading.Event(), threading.Event()

    def ready(ctx: Context, x: int) -> int:
        begun.set()
        goes.wait()
        return int(ctx.call("leaf", x))

    async def aready(ctx: Context, x: int) -> int:
        begun.set()
        await asyncio.to_thread(goes.wait)
        return int(await ctx.call("leaf", x))

    def leaf(x: int) -> int:
        return x + 1

    made = world(ready, aready, leaf)
    running = asyncio.create_task(made.run("ready" if parent == "parent" else "aready", 1))
    assert await asyncio.to_thread(begun.wait, 5)
    draining = asyncio.create_task(made.driver.drain(5))
    await asyncio.sleep(0)
    assert made.engine.is_draining
    goes.set()
    assert await running == [2]
    assert await draining


async def test_E129_metadata_is_handed_down(world: Make) -> None:
    def child(ctx: Context) -> str:
        return ctx.metadata["who"]

    def caller(x: int, ctx: Context) -> str:
        return str(ctx.call("child"))

    async def acaller(x: int, ctx: Context) -> str:
        return str(await ctx.call("child"))

    made = world(child, caller, acaller)
    assert await made.run("caller", 1, metadata={"who": "me"}) == ["me"]
    assert await made.run("acaller", 1, metadata={"who": "me"}) == ["me"]


async def test_E129_a_chosen_status_passes_all_callers(world: Make) -> None:
    def child(x: int) -> int:
        raise StatusError(Status.ALREADY_EXISTS, "it is there")

    def middle(x: int, ctx: Context) -> int:
        return int(ctx.call("child", x))

    async def outer(x: int, ctx: Context) -> int:
        return int(await ctx.call("middle", x))

    made = world(child, middle, outer)
    with pytest.raises(NestedError) as caught:
        await made.run("outer", 1)
    assert (caught.value.status, str(caught.value)) == (Status.ALREADY_EXISTS, "it is there")


async def test_E129_a_callee_that_nobody_awaits_ends_with_its_caller(world: Make) -> None:
    """The caller begins a task and leaves: the callee does not outlive it."""
    seen = Seen()
    tasks = []

    async def caller(x: int, ctx: Context) -> int:
        tasks.append(asyncio.create_task(ctx.call("aendless")))
        assert await asyncio.to_thread(seen.begun.wait, 5)
        return x

    made = world(caller, *children(seen))
    assert await made.run("caller", 1) == [1]
    assert await asyncio.to_thread(seen.left.wait, 5)
    with pytest.raises((StopInvocation, InvocationError)):
        await tasks[0]


async def test_E129_an_input_of_the_caller_may_feed_the_callee(world: Make) -> None:
    """A streaming function gives its own input on, value by value; from a thread and from the loop."""

    def double(xs: Iterator[int]) -> Iterator[int]:
        for one in xs:
            yield 2 * one

    async def adouble(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for one in xs:
            yield 2 * one

    def through(xs: Iterator[int], ctx: Context) -> Iterator[int]:
        yield from ctx.stream("double", xs)

    def across(xs: Iterator[int], ctx: Context) -> Iterator[int]:
        yield from ctx.stream("adouble", (one + 1 for one in xs))

    async def athrough(xs: AsyncIterator[int], ctx: Context) -> AsyncIterator[int]:
        async for one in ctx.stream("double", xs):
            yield one

    made = world(double, adouble, through, across, athrough)
    assert await made.run("through", 1, 2, 3) == [2, 4, 6]
    assert await made.run("across", 1, 2, 3) == [4, 6, 8]
    assert await made.run("athrough", 1, 2, 3) == [2, 4, 6]
    assert await made.result(made.whole("through", 1, 2, 3)) == [2, 4, 6]
    assert await made.result(made.whole("across", 1, 2, 3)) == [4, 6, 8]


async def test_a_caller_that_reads_its_input_in_the_callee_sees_its_end(world: Make) -> None:
    """While the callee waits for the caller's input, the caller's peer goes: both hear of it."""
    seen = Seen()

    def total(xs: Iterator[int]) -> int:
        try:
            return sum(xs)
        except InputCancelled:
            seen.what.append("callee")
            raise

    def caller(xs: Iterator[int], ctx: Context) -> Iterator[int]:
        try:
            yield int(ctx.call("total", (_tell(seen, one) for one in xs)))
        except StopInvocation:
            seen.what.append("caller")
            raise

    made = world(total, caller)
    never = asyncio.Event()
    running = asyncio.create_task(_open_call(made, never))
    assert await asyncio.to_thread(seen.begun.wait, 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await made.driver.left(5)
    assert seen.what == ["callee", "caller"]


def _tell(seen: Seen, one: int) -> int:
    seen.begun.set()
    return one


async def _open_call(made: World, never: asyncio.Event) -> None:
    """A call of ``caller`` whose input does not end."""
    from invoker.execution.loop.request import converse
    from invoker.protocols.riff.session import RiffSession
    from tests.execution.nested.world import _frames

    frames = iter(_frames((1,)))

    async def read() -> bytes | None:
        frame = next(frames, None)
        if frame is None:
            await never.wait()
        return frame

    await converse(RiffSession(function="caller"), made.driver, read, lambda _: None)
