"""What streaming functions hand back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from invoker.message import Message, Output
from invoker.results import async_results, sync_results
from invoker.spec import CallPlan, FunctionSpec, Result, StreamSpec
from invoker.tee import tee
from tests.bodies import async_generator, run


def spec(result: Result, outputs: int = 1, *, is_open: bool = False) -> FunctionSpec:
    streams = tuple(StreamSpec(f"out{index}") for index in range(outputs))
    return FunctionSpec("f", outputs=streams, open_outputs=is_open, call=CallPlan(result=result))


def never(_: Any) -> Any:
    raise AssertionError("nothing here is to be awaited")


def listed(result: Result, value: Any, **options: Any) -> list[list[Any]]:
    return [list(one) for one in sync_results(spec(result, **options), value, never)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        (5, [[5]]),
        ([1, 2], [[[1, 2]]]),
        ((1, 2), [[(1, 2)]]),
        (iter([1, 2]), [[1, 2]]),
        ((iter([1]), iter([2])), [[1], [2]]),
        ((), [[()]]),
    ],
)
def test_an_unannotated_result_is_taken_for_what_it_is(value: Any, expected: Any) -> None:
    """Iterators are streams; lists and tuples of values are values."""
    assert listed(Result.UNKNOWN, value, is_open=True) == expected


def test_an_annotated_result_is_taken_as_promised() -> None:
    """A value stays a value even when it can be iterated."""
    assert listed(Result.VALUE, iter([1])) != [[1]]
    assert listed(Result.STREAM, [1, 2]) == [[1, 2]]
    assert listed(Result.NOTHING, 5) == []
    assert listed(Result.SEVERAL, [iter([1]), iter([2])], outputs=2) == [[1], [2]]


@pytest.mark.parametrize(
    ("result", "value", "text"),
    [
        (Result.SEVERAL, 5, "returned a int; it promises a tuple"),
        (Result.SEVERAL, (iter([]),), "returned 1 iterators; it promises 2"),
        (Result.SEVERAL, (iter([]), 5), "returned a int where it promises an iterator"),
        (Result.STREAM, None, "returned None where it promises an iterator"),
    ],
)
async def test_a_broken_promise_is_a_type_error(result: Result, value: Any, text: str) -> None:
    """Sync and async alike."""
    with pytest.raises(TypeError, match=text):
        sync_results(spec(result, 2), value, never)
    with pytest.raises(TypeError, match=text):
        await async_results(spec(result, 2), value)


async def test_R034_a_plain_function_may_return_an_async_iterator() -> None:
    """It is read through the driver's wait, and closed."""
    closed: list[bool] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    def wait(awaitable: Any) -> Any:
        steps = awaitable.__await__()
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("it waits")

    (output,) = sync_results(spec(Result.UNKNOWN), numbers(), wait)
    assert next(output) == 1
    output.close()  # type: ignore[attr-defined]
    assert closed == [True]


async def test_async_results_adapt_sync_iterables() -> None:
    """An unannotated coroutine function may return a list where it promises a stream."""
    (output,) = await async_results(spec(Result.STREAM), [1, 2])
    assert [one async for one in output] == [1, 2]


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


def split(xs: Iterator[int]) -> Split:
    left, right = tee(xs, limit=None)
    return Split((x for x in left if x % 2 == 0), (x for x in right if x % 2))


async def split_async(xs: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
    left, right = tee(xs, limit=None)
    return (x async for x in left if x % 2 == 0), (x async for x in right if x % 2)


def split_unannotated(xs: Iterator[int]):  # type: ignore[no-untyped-def]
    return tuple(split(xs))


@pytest.mark.parametrize("fn", [split, split_async, split_unannotated])
async def test_R039_a_tuple_of_iterators_is_several_outputs(fn: Any) -> None:
    """Tuple, NamedTuple, and what turns out to be one."""
    assert await run(fn, range(6)) == [[0, 2, 4], [1, 3, 5]]


async def test_R039_tagged_values_pass_untouched() -> None:
    """The driver routes them."""

    def tag(xs: Iterator[int]) -> Iterator[Output]:
        for x in xs:
            yield Output("big" if x > 1 else 0, x)

    assert await run(tag, [1, 2]) == [[Output(0, 1), Output("big", 2)]]


async def test_R039_a_wrong_number_of_iterators_fails_the_call() -> None:
    """What the annotation promises is checked."""

    def pair(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
        return (xs, xs, xs)  # type: ignore[return-value]

    with pytest.raises(TypeError, match="returned 3 iterators; it promises 2"):
        await run(pair, [1])


async def test_R041_messages_and_values_may_be_mixed() -> None:
    """Both pass untouched."""

    def mixed(xs: Iterator[int]) -> Iterator[Any]:
        yield 1
        yield Message(2, {"a": "b"})

    assert await run(mixed, []) == [[1, Message(2, {"a": "b"})]]


async def test_R043_a_module_may_declare_streaming() -> None:
    """A plain function that takes and returns an iterator."""
    namespace: dict[str, Any] = {"interaction_model": "stream"}
    exec("def relay(xs):\n    return (x + 1 for x in xs)", namespace)
    assert await run(namespace["relay"], [1, 2]) == [[2, 3]]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_sink_has_no_output(is_async: bool) -> None:
    """It has run when open returns."""
    rows: list[int] = []

    def store(xs: Iterator[int]) -> None:
        rows.extend(xs)

    async def store_async(xs: AsyncIterator[int]) -> None:
        async for x in xs:
            rows.append(x)

    assert await run(store_async if is_async else store, [1, 2]) == []
    assert rows == [1, 2]


async def test_plain_functions_may_return_generators_and_iterables() -> None:
    """Whatever can be iterated, where an iterator is promised."""

    def listed(xs: Iterator[int]) -> Iterable[int]:
        return [x + 1 for x in xs]

    def mapped(xs: Iterator[int]):  # type: ignore[no-untyped-def]
        return map(str, xs)

    async def opened(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        return async_generator(xs)

    def passed(xs: AsyncIterator[int]) -> AsyncIterator[int]:
        return async_generator(xs)

    assert await run(listed, [1]) == [[2]]
    assert await run(mapped, [1]) == [["1"]]
    assert await run(opened, [1]) == await run(passed, [1]) == [[10]]


@pytest.mark.parametrize("result", [None, 5, "text"])
async def test_a_promised_iterator_that_is_none_is_told(result: Any) -> None:
    """The author forgot to return, or returned a value."""

    def broken(xs: Iterator[int]) -> Iterator[int]:
        return result  # type: ignore[no-any-return]

    with pytest.raises(TypeError, match="where it promises an iterator"):
        await run(broken, [1])
