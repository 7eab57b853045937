"""Mistakes that are seen in the source."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from time import sleep as nap
from typing import Any

import pytest

from invoker import tee
from invoker.author.checks import check
from invoker.author.reader import read


async def fetch(x: int) -> int:
    return x


def texts(fn: Any) -> list[str]:
    return [finding.text for finding in check(fn, read(fn))]


async def forgets_expression(x: int) -> int:
    fetch(x)
    return x


async def forgets_return(x: int) -> int:
    return fetch(x)  # type: ignore[return-value]


async def forgets_module(x: int) -> int:
    asyncio.sleep(1)
    return x


async def forgets_arithmetic(x: int) -> int:
    return fetch(x) + 1  # type: ignore[operator]


async def forgets_name(x: int) -> int:
    later = fetch(x)
    return later + 1  # type: ignore[operator]


async def forgets_yield(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield fetch(x)  # type: ignore[misc]


class Model:
    async def load(self) -> None: ...

    async def __call__(self, x: int) -> int:
        self.load()
        return x


@pytest.mark.parametrize(
    "fn",
    [
        forgets_expression,
        forgets_return,
        forgets_module,
        forgets_arithmetic,
        forgets_name,
        forgets_yield,
        Model,
        Model(),
    ],
)
def test_a_coroutine_that_is_never_awaited_is_an_error(fn: Any) -> None:
    """The line and the fix are told."""
    (finding,) = check(fn, read(fn))
    assert finding.is_error
    assert "is never awaited, so it does not run; write `await " in finding.text
    assert finding.where.rpartition(":")[0].endswith("test_checks.py")


async def collects(x: int) -> int:
    later = fetch(x)
    tasks = [fetch(x), fetch(x)]
    await asyncio.gather(later, *tasks, fetch(x))
    return await fetch(x)


async def shadows(fetch: Any) -> int:
    fetch(1)
    return 1


async def nests(x: int) -> int:
    async def inner() -> None:
        fetch(x)  # nobody knows whether it runs

    return x


def is_sync(x: int) -> Any:
    return fetch(x)


@pytest.mark.parametrize("fn", [collects, shadows, nests, is_sync, lambda x: x, len])
def test_what_may_be_right_is_left_alone(fn: Any) -> None:
    """Passed on, collected, shadowed, nested, returned by a plain function."""
    assert texts(fn) == []


async def loops(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    for x in xs:  # type: ignore[attr-defined]
        yield x


async def comprehends(xs: AsyncIterator[int]) -> int:
    return sum([x + 1 for x in xs])  # type: ignore[attr-defined]


@pytest.mark.parametrize("fn", [loops, comprehends])
def test_a_sync_loop_over_an_async_stream_is_an_error(fn: Any) -> None:
    """The fix is `async for`."""
    assert texts(fn) == ["'for ... in xs' cannot read an async stream; write `async for ... in xs`"]


async def sums(xs: AsyncIterator[int]) -> int:
    return sum(xs)  # type: ignore[arg-type]


def test_a_builtin_that_iterates_an_async_stream_is_an_error() -> None:
    """The fix is to collect it first."""
    assert texts(sums) == ["'sum(xs)' cannot read an async stream; collect it first: [x async for x in xs]"]


async def reads_twice(xs: AsyncIterator[int]) -> int:
    xs = [x async for x in xs]  # type: ignore[assignment]
    return sum(xs)  # type: ignore[arg-type]


def test_a_name_that_was_given_another_meaning_is_left_alone() -> None:
    """A list under the parameter's name can be summed."""
    assert texts(reads_twice) == []


async def blocks(x: int) -> int:
    time.sleep(1)  # noqa: ASYNC251
    nap(1)  # noqa: ASYNC251
    subprocess.run(["true"], check=False)  # noqa: ASYNC221
    input()  # noqa: ASYNC250
    return x


def test_blocking_calls_in_an_async_function_are_warnings() -> None:
    """Found under any name; they do not refuse the function."""
    findings = check(blocks, read(blocks))
    assert [finding.is_error for finding in findings] == [False] * 4
    assert "'nap(...)' blocks the event loop" in findings[1].text
    assert findings[0].text.endswith("use await asyncio.sleep(...)")


def sleeps(x: int) -> int:
    time.sleep(0)
    return x


def test_a_sync_function_may_block() -> None:
    """It has a thread of its own."""
    assert texts(sleeps) == []


def lazily(xs):  # type: ignore[no-untyped-def]
    return (x * x for x in xs)


def test_an_unannotated_function_that_returns_a_generator_is_an_error() -> None:
    """Without annotations it is request/reply."""
    assert texts(lazily) == [
        (
            "'lazily' is request/reply, but it returns a generator; annotate its parameter and its result "
            "Iterator[...] to stream"
        )
    ]


def forgot_yield(xs: Iterator[int]) -> Iterator[int]:
    for x in xs:
        x * x


def abstract(xs: Iterator[int]) -> Iterator[int]:
    raise NotImplementedError


def test_a_promised_iterator_that_never_comes_is_an_error() -> None:
    """A function that only raises is left alone."""
    assert texts(forgot_yield) == [
        "'forgot_yield' promises an iterator, but neither yields nor returns; yield its values"
    ]
    assert texts(abstract) == []


def test_a_finding_reads_as_place_and_text() -> None:
    """``file:line: text``."""
    (finding,) = check(lazily, read(lazily))
    assert str(finding) == f"{finding.where}: {finding.text}"


def test_a_function_whose_closure_is_not_bound_yet_is_checked_all_the_same() -> None:
    """A name that the function around it binds later is no reason to refuse it."""

    async def fetch(x: int) -> int:
        return later(x)

    assert texts(fetch) == []

    def later(x: int) -> int:
        return x


def plain_loop(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    for x in xs:  # type: ignore[attr-defined]
        print(x)
    return xs


def plain_list(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    print(list(xs))  # type: ignore[call-overload]
    return xs


def plain_nothing(xs: AsyncIterator[int]) -> AsyncIterator[int]:  # type: ignore[empty-body]
    pass


@pytest.mark.parametrize(
    ("fn", "fix"),
    [
        (plain_loop, "write `async def plain_loop` and `async for ... in xs`"),
        (plain_list, "write `async def plain_list` and `async for ... in xs`"),
        (plain_nothing, "write `async def plain_nothing` and yield its values"),
    ],
)
def test_a_plain_function_of_async_streams_is_told_to_become_async(fn: Any, fix: str) -> None:
    """`async for` alone would be a syntax error in it, and `yield` alone a sync generator."""
    (text,) = texts(fn)
    assert text.endswith(fix)


def shares(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
    return (x for x in xs), (-x for x in xs)


async def shares_async(xs: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
    return (x async for x in xs), (-x async for x in xs)


def shares_nothing(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
    a, b = tee(xs)
    return (x for x in a), (-x for x in b)


def shares_another(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
    xs, ys = tee(xs)
    return (x for x in xs), (x + y for x, y in zip(xs, ys, strict=True))


def test_two_outputs_of_one_stream_are_warned_of() -> None:
    """With the call that splits it; not where it was split, or the name means something else."""
    for fn in (shares, shares_async):
        (finding,) = check(fn, read(fn))
        assert not finding.is_error
        assert finding.text == (
            "outputs 0 and 1 both read 'xs', so each gets only the values that the other leaves; "
            "give each a branch of its own: `a, b = tee(xs)`, from invoker"
        )
    assert texts(shares_nothing) == texts(shares_another) == []
