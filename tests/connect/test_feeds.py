"""Tests of where values come from."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing

import pytest

from invoker.connect.feeds import check_inputs, in_turn, iterate, pull


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ("abc", "inputs is a str"),
        (iter([]), "inputs is a list_iterator; give one iterable an input"),
        ({"a": []}, "inputs is a dict"),
        (["abc"], "input 0 is a str; give an iterable of values"),
        ([[1], 5], "input 1 is a int"),
        ([b"x"], "input 0 is a bytes"),
        ([{"a": 1}], "input 0 is a dict"),
    ],
)
def test_values_in_place_of_iterables_are_refused(inputs: object, text: str) -> None:
    """A str would silently become one value a letter."""
    with pytest.raises(TypeError, match=text):
        check_inputs(inputs)  # type: ignore[arg-type]


async def test_iterate_closes_either_kind_of_generator() -> None:
    """`finally` runs when the call ends early, not when garbage is collected."""
    closed: list[str] = []

    def plain() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            closed.append("plain")

    async def waiting() -> AsyncIterator[int]:
        try:
            for number in range(9):
                yield number
        finally:
            closed.append("async")

    for generator in (plain(), waiting()):
        async with aclosing(iterate(generator)) as values:
            assert await anext(values) == 0
    assert closed == ["plain", "async"]


async def test_iterate_leaves_files_open(tmp_path: object) -> None:
    """A file is an iterator with `close`, but it belongs to whoever opened it."""
    with open(__file__) as file:  # noqa: ASYNC230, PTH123
        async with aclosing(iterate(file)) as lines:
            await anext(lines)
        assert not file.closed


async def test_pull_does_not_block_the_loop_and_never_runs_ahead() -> None:
    """A value is asked for when the reader wants it."""
    gate = threading.Event()
    asked: list[int] = []

    def blocking() -> Iterator[int]:
        for number in range(3):
            asked.append(number)
            yield number
        gate.wait()
        yield 99

    async with aclosing(pull(blocking())) as values:
        assert [await anext(values), await anext(values)] == [0, 1]
        assert asked == [0, 1]
        assert await anext(values) == 2
        last = asyncio.ensure_future(anext(values))
        await asyncio.sleep(0)  # the loop is free while the thread blocks
        gate.set()
        assert await last == 99


async def test_pull_hands_over_what_the_iterable_raises() -> None:
    """Also when `iter()` itself raises."""

    def bad() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    values = pull(bad())
    assert await anext(values) == 1
    with pytest.raises(KeyError, match="mine"):
        await anext(values)
    with pytest.raises(TypeError, match="not iterable"):
        await anext(pull(5))  # type: ignore[arg-type]


async def test_pull_closes_the_generator_in_its_thread() -> None:
    """The thread ends with it."""
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    async with aclosing(pull(endless())) as values:
        await anext(values)
    assert await asyncio.to_thread(closed.wait, 5)


async def test_feeds_that_come_first_are_sent_to_their_end_before_the_others() -> None:
    """One after the other; without any, nothing is changed."""

    async def feed(*values: str) -> AsyncGenerator[str, None]:
        for value in values:
            await asyncio.sleep(0)
            yield value

    feeds = [feed("a", "b"), feed("c"), feed("d", "e")]
    seen: list[str] = []

    async def read(one: AsyncGenerator[str, None]) -> None:
        async for value in one:
            seen.append(value)

    turns = in_turn(feeds, [1, 2])
    assert len(turns) == 2
    await asyncio.gather(*map(read, reversed(turns)))
    assert seen == ["c", "d", "e", "a", "b"]
    plain = [feed("a")]
    assert in_turn(plain, []) == plain


async def test_feeds_in_turn_are_closed_with_what_they_hold() -> None:
    """Also one that still waits for its turn."""
    closed: list[str] = []

    async def feed(name: str) -> AsyncGenerator[str, None]:
        try:
            while True:
                yield name
        finally:
            closed.append(name)

    first, second = feed("first"), feed("second")
    await anext(second)
    ahead, behind = in_turn([second, first], [1])
    assert await anext(ahead) == "first"
    waiting = asyncio.ensure_future(anext(behind))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ahead.aclose()
    assert sorted(closed) == ["first", "second"]
