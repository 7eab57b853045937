"""Branches of one stream, read by threads and tasks."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from invoker import tee as exported
from invoker.author.tee import tee
from invoker.errors import Cancelled, InputCancelled


async def numbers(count: int) -> AsyncIterator[int]:
    for one in range(count):
        yield one


async def collect(stream: AsyncIterator[int]) -> list[int]:
    return [one async for one in stream]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up at once on a branch that nobody has begun to read."""
    monkeypatch.setattr(sys.modules["invoker.author.tee"], "_PATIENCE_S", 0.01)


def test_it_is_exported_as_a_function() -> None:
    """The module of the same name must not hide it."""
    assert exported is tee


def test_every_branch_sees_every_item_in_order() -> None:
    """Read in turn by one thread."""
    branches = tee(iter(range(5)), 3)
    assert list(zip(*branches, strict=True)) == [(one, one, one) for one in range(5)]


def test_branches_read_by_several_threads_see_everything() -> None:
    """The bound of 4 makes them wait for each other."""
    branches = tee(iter(range(2000)), 4, limit=4)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(list, branches)) == [list(range(2000))] * 4


def test_the_branch_ahead_waits_for_the_slowest() -> None:
    """It reads on when the slow one does."""
    pulled: list[int] = []
    is_ahead = threading.Event()

    def source() -> Iterator[int]:
        for one in range(10):
            pulled.append(one)
            if one == 3:
                is_ahead.set()
            yield one

    fast, slow = tee(source(), limit=3)
    next(slow)
    got: list[int] = []
    reader = threading.Thread(target=lambda: got.extend(fast))
    reader.start()
    assert is_ahead.wait(5)
    reader.join(0.02)
    assert reader.is_alive()
    assert pulled == [0, 1, 2, 3]
    assert list(slow) == list(range(1, 10))
    reader.join()
    assert got == list(range(10))


def test_one_thread_that_reads_branches_one_after_the_other_is_told(impatient: None) -> None:
    """It would wait for itself for ever."""
    left, right = tee(iter(range(10)), limit=3)
    with pytest.raises(RuntimeError, match="pass limit=None"):
        list(left)
    assert [next(right) for _ in range(3)] == [0, 1, 2]


def test_one_thread_that_has_read_both_is_told_at_once() -> None:
    """No patience is needed when the reader is known."""
    left, right = tee(iter(range(10)), limit=3)
    next(right)
    with pytest.raises(RuntimeError, match="3 items ahead"):
        list(left)


def test_without_a_limit_nobody_waits() -> None:
    """One branch after the other."""
    left, right = tee(iter(range(5000)), limit=None)
    assert list(left) == list(right) == list(range(5000))


@pytest.mark.parametrize("drop", [lambda branches: branches[1].close(), lambda branches: branches.pop()])
def test_a_closed_or_dropped_branch_holds_nobody_up(drop: Any) -> None:
    """The other one reads to the end."""
    branches: list[Any] = list(tee(iter(range(10)), limit=2))
    next(branches[1])
    drop(branches)
    assert list(branches[0]) == list(range(10))


def test_a_closed_branch_has_ended() -> None:
    """Reading it is a plain end."""
    left, _ = tee(iter([1, 2]))
    left.close()  # type: ignore[attr-defined]
    assert list(left) == []


def test_an_error_reaches_every_branch_after_the_items_before_it() -> None:
    """A cancelled input is never a clean end."""

    def failing() -> Iterator[int]:
        yield 1
        raise InputCancelled(Cancelled("gone"))

    for branch in tee(failing()):
        assert next(branch) == 1
        with pytest.raises(InputCancelled):
            next(branch)


def test_a_circle_is_told() -> None:
    """A stream that reads its own branch."""
    branches: list[Iterator[int]] = []

    def circular() -> Iterator[int]:
        yield next(branches[0])

    branches.extend(tee(circular()))
    with pytest.raises(RuntimeError, match="remove this cycle"):
        next(branches[0])


def test_senseless_numbers_are_refused() -> None:
    """Before anything is read."""
    for arguments in ({"n": -1}, {"limit": 0}):
        with pytest.raises(ValueError, match="needs n >= 0"):
            tee(iter([]), **arguments)


async def test_async_branches_read_by_several_tasks_see_everything() -> None:
    """The bound of 4 makes them wait for each other."""
    branches = tee(numbers(500), 3, limit=4)
    assert await asyncio.gather(*map(collect, branches)) == [list(range(500))] * 3


async def test_async_branches_read_in_turn_by_one_task() -> None:
    """No second task is needed."""
    left, right = tee(numbers(5))
    assert [(await anext(left), await anext(right)) for _ in range(5)] == [(one, one) for one in range(5)]


async def test_an_async_branch_read_after_the_other_by_one_task_is_told(impatient: None) -> None:
    """As with threads."""
    left, _right = tee(numbers(10), limit=3)
    with pytest.raises(RuntimeError, match="pass limit=None"):
        await collect(left)


@pytest.mark.parametrize("is_dropped", [False, True])
async def test_a_closed_async_branch_wakes_who_waits_for_it(is_dropped: bool) -> None:
    """The task that waits goes on."""
    branches = list(tee(numbers(10), limit=2))
    reading = asyncio.create_task(collect(branches.pop(0)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not reading.done()
    if is_dropped:
        del branches[:]
    else:
        await branches[0].aclose()  # type: ignore[attr-defined]
    assert await reading == list(range(10))


async def test_an_async_error_reaches_every_branch() -> None:
    """After the items before it."""

    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("broken")

    for branch in tee(failing()):
        assert await anext(branch) == 1
        with pytest.raises(ValueError, match="broken"):
            await anext(branch)


async def test_a_reader_that_is_cancelled_does_not_end_the_others_cleanly() -> None:
    """Its cancel took the generator down; that is an error for the rest."""

    async def endless() -> AsyncIterator[int]:
        await asyncio.Event().wait()
        yield 1

    left, right = tee(endless())
    reading = asyncio.create_task(collect(left))
    waiting = asyncio.create_task(collect(right))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    with pytest.raises(RuntimeError, match="was cancelled together"):
        await waiting
