"""The warm pool: how many children there are, and that none is left."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from invoker.author.prepare import prepare_function
from invoker.errors import HookError, Overloaded
from invoker.execution.isolation.child import Child
from invoker.execution.isolation.pool import Children, ChildrenSettings
from tests.execution.isolation import functions as f
from tests.execution.isolation.world import serving, until


def files() -> set[str]:
    return {one.name for one in Path("/proc/self/fd").iterdir()}


async def test_nothing_is_left() -> None:
    """No process, no zombie, no descriptor."""
    async with serving(f.square) as world:  # what the first use opens, such as the executor's, is here to stay
        await world.call("square", [1])
    before = files()
    async with serving(f.square, f.crash, warm=2) as world:
        pids = set(world.driver.children.pids)
        await asyncio.gather(*(world.call("square", [n]) for n in range(4)), world.call("crash", ["exit"]))
        pids |= set(world.driver.children.pids)
    for one in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(one, 0)
    assert len(files() - before) <= 1


async def test_one_more_than_may_is_refused() -> None:
    """At once, with the setting's name."""
    async with serving(f.accumulate, f.square, most=1) as world:
        running = asyncio.create_task(world.call("accumulate", iter(range(10**9))))
        await until(lambda: world.driver.children.busy)
        _, error = await world.call("square", [1])
        assert isinstance(error, Overloaded)
        assert "INVOKER_CHILDREN" in str(error)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


@pytest.mark.parametrize(("warm", "most"), [(0, 12), (1, 12), (3, 5)])
async def test_a_crowd_starts_few_children_at_a_time(warm: int, most: int) -> None:
    """All of it is served, each call by a child of its own if need be; those that find no place wait for one."""
    async with serving(f.square, warm=warm, most=most) as world:
        children, seen = world.driver.children, []
        spawn = children._spawn

        def counted() -> Child:
            seen.append(sum(not one.is_ready for one in children._all))
            return spawn()

        children._spawn = counted  # type: ignore[method-assign]
        found = await asyncio.gather(*(world.call("square", [n]) for n in range(most)))
        assert found == [([n * n], None) for n in range(most)]
        assert max(seen) < children.settings.starts == 2
        assert not children._waiting
        await until(lambda: not children.busy)


async def test_those_who_wait_for_a_child_count_and_may_leave() -> None:
    """One more than may is refused at once; who is gone gets none, and the others theirs."""
    async with serving(f.square, warm=0, most=6) as world:
        children = world.driver.children
        calls = [asyncio.create_task(world.call("square", [n])) for n in range(6)]
        await until(lambda: len(children._waiting) == 4)
        _, error = await world.call("square", [7])
        assert isinstance(error, Overloaded)
        calls[5].cancel()
        await until(lambda: len(children._waiting) < 4)
        assert [await one for one in calls[:5]] == [([n * n], None) for n in range(5)]
        with pytest.raises(asyncio.CancelledError):
            await calls[5]


async def test_children_that_die_while_they_start_keep_nobody_waiting() -> None:
    """Each call is told, and the next one has the place."""
    async with serving(f.square, warm=0, most=6) as world:
        children = world.driver.children
        calls = [asyncio.create_task(world.call("square", [n])) for n in range(6)]
        killed: set[int] = set()
        while not all(one.done() for one in calls):
            for one in set(children.pids) - killed:
                os.kill(one, signal.SIGKILL)
                killed.add(one)
            await asyncio.sleep(0.01)
        assert all(error is not None for _, error in [await one for one in calls])
        assert not children.busy
        assert not children._waiting
        assert await world.call("square", [3]) == ([9], None)


async def test_the_next_call_finds_a_warm_child() -> None:
    """When the last idle one is taken, another is started."""
    async with serving(f.accumulate, warm=1) as world:
        children = world.driver.children
        running = asyncio.create_task(world.call("accumulate", iter(range(10**9))))
        await until(lambda: children.busy and children.idle)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_an_idle_child_that_dies_is_replaced() -> None:
    """Nobody's call is lost."""
    async with serving(f.square) as world:
        children = world.driver.children
        (first,) = children.pids
        os.kill(first, signal.SIGKILL)
        await until(lambda: first not in children.pids and children.idle)
        assert await world.call("square", [3]) == ([9], None)


async def test_children_that_cannot_start_stop_the_start() -> None:
    """The sentence of the child is that of the process."""

    prepared = prepare_function(f.square).function
    prepared.spec = replace(prepared.spec, entrypoint="tests.no_such:fn")
    children = Children((prepared,), ChildrenSettings(2, 1))
    with pytest.raises(HookError, match="no_such"):
        await children.start()
    assert children.pids == []


async def test_without_isolated_functions_there_are_no_children() -> None:
    """Nothing is started for those who do not ask for it."""
    async with serving() as world:
        assert world.driver.children.pids == []
