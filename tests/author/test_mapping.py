"""The mapping of request/reply functions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from invoker.author.decorator import function
from invoker.author.mapping import _MOST_PLAIN, PLAIN, gather_map, is_plain, map_async, map_sync
from invoker.context import Context
from invoker.errors import FunctionError
from tests.bodies import async_value, generator, lifted, run, stream, value


def never(_: Any) -> Any:
    raise AssertionError("nothing here is to be awaited")


def test_values_are_told_from_awaitables_by_type() -> None:
    """Each type is looked at once."""

    class Mine: ...

    assert is_plain(Mine())
    assert Mine in PLAIN
    future: asyncio.Future[int] = asyncio.Future(loop=asyncio.new_event_loop())
    assert not is_plain(future)
    future.get_loop().close()
    PLAIN.discard(Mine)


def test_R011_a_function_that_makes_types_does_not_fill_the_memory() -> None:
    """The set of known types is bounded."""
    before = set(PLAIN)
    for number in range(_MOST_PLAIN + 10):
        assert is_plain(type(f"T{number}", (), {})())
    assert len(PLAIN) == _MOST_PLAIN
    PLAIN.intersection_update(before)


def test_each_way_of_mapping() -> None:
    """One input, several, and an ignored one."""
    assert list(map_sync(lambda x: x + 1, [iter([1])], never, ignores=False)) == [2]
    assert list(map_sync(lambda x, y: x + y, [iter([1]), iter([2])], never, ignores=False)) == [3]
    assert list(map_sync(lambda: 7, [iter([None] * 2)], never, ignores=True)) == [7, 7]


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize(
    ("call", "inputs", "ignores", "expected"),
    [
        (lambda x: x + 1, 1, False, [1, 2, 3, 4]),
        (lambda x, y: (x, y), 2, False, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        (lambda: 7, 1, True, [7] * 4),
    ],
)
async def test_each_way_of_mapping_on_the_loop(
    call: Callable[..., Any], inputs: int, ignores: bool, expected: list[Any], concurrency: int
) -> None:
    """Plain results and coroutines, one by one and overlapping."""

    async def later(*values: Any) -> Any:
        await asyncio.sleep(0)
        return call(*values)

    for fn in (call, later):
        streams = [stream(range(4)) for _ in range(inputs)]
        mapped = (
            map_async(fn, streams, ignores=ignores)
            if concurrency == 1
            else gather_map(fn, streams, concurrency, ignores=ignores)
        )
        assert [one async for one in mapped] == expected


async def test_R035_results_are_handed_on_while_the_next_input_is_awaited() -> None:
    """The overlap must not hold a finished result back."""
    release = asyncio.Event()

    async def slow_source() -> AsyncIterator[int]:
        yield 1
        await release.wait()
        yield 2

    mapped = gather_map(lambda x: x, [slow_source()], 4, ignores=False)
    assert await anext(mapped) == 1
    release.set()
    assert [one async for one in mapped] == [2]


async def test_R035_no_more_calls_begin_than_may_overlap() -> None:
    """A slow reader of results stops the reading of inputs."""
    begun: list[int] = []

    async def note(x: int) -> int:
        begun.append(x)
        return x

    mapped = gather_map(note, [stream(range(100))], 3, ignores=False)
    await anext(mapped)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(begun) <= 4
    await mapped.aclose()  # type: ignore[attr-defined]


async def test_no_inputs_at_all_give_nothing() -> None:
    """A variadic function that nobody sent anything."""
    assert [one async for one in map_async(lambda *x: x, [], ignores=False)] == []
    assert list(map_sync(lambda *x: x, [], never, ignores=False)) == []


@pytest.mark.parametrize("is_async", [False, True])
async def test_R032_no_inputs_give_no_outputs_and_no_call(is_async: bool) -> None:
    """The function is not called."""
    calls: list[int] = []

    async def note_async(x: int) -> None:
        calls.append(x)

    assert await run(note_async if is_async else calls.append, []) == [[]]
    assert calls == []


@pytest.mark.parametrize("is_async", [False, True])
async def test_R033_an_exception_ends_the_output_and_later_inputs_are_not_processed(is_async: bool) -> None:
    """Outputs before it are delivered; it is raised while producing, not by open."""
    taken: list[int] = []

    def inverse(x: int) -> float:
        taken.append(x)
        return 1 / x

    async def inverse_async(x: int) -> float:
        return inverse(x)

    body = lifted(inverse_async if is_async else inverse)
    got: list[float] = []
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        if is_async:
            (output,) = await body.open_async([stream([1, 0, 2])], Context())
            async for one in output:
                got.append(one)
        else:
            for one in body.open([iter([1, 0, 2])], Context())[0]:
                got.append(one)
    assert (got, taken) == ([1.0], [1, 0])


async def test_R033_stop_iteration_in_a_function_is_an_error_and_no_end() -> None:
    """A leaked StopIteration must not look like the end of the output (R-123)."""

    def leaky(x: int) -> int:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await run(leaky, [1])


async def test_R034_awaitables_returned_by_a_plain_function_are_awaited() -> None:
    """The driver's wait gives the result; annotated ones run on the loop."""

    def later(x: int):  # type: ignore[no-untyped-def]
        return async_value(x)

    def promised(x: int) -> Awaitable[int]:
        return asyncio.ensure_future(async_value(x))

    def wait(awaitable: Any) -> Any:
        try:
            awaitable.send(None)
            awaitable.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("it waits for more than one turn of the loop")

    context = Context()
    context.bind(SimpleNamespace(wait=wait))  # type: ignore[arg-type]
    assert await run(later, [1, 2], context=context) == [[10, 20]]
    assert await run(promised, [1, 2]) == [[10, 20]]


async def test_R034_an_awaitable_without_a_driver_is_a_clear_error() -> None:
    """Nothing is left un-awaited."""

    def later(x: int):  # type: ignore[no-untyped-def]
        return async_value(x)

    with pytest.raises(TypeError, match="write `async def`"):
        await run(later, [1])


async def test_R035_concurrent_calls_overlap_and_results_keep_their_order() -> None:
    """The first call ends last, and is still the first result."""
    running: list[int] = []
    most = 0

    @function(concurrency=3)
    async def slow(x: int) -> int:
        nonlocal most
        running.append(x)
        most = max(most, len(running))
        for _ in range(10 - x):
            await asyncio.sleep(0)
        running.remove(x)
        return x

    assert await run(slow, range(10)) == [list(range(10))]
    assert most == 3


async def test_R035_sequential_by_default() -> None:
    """No two calls overlap."""
    running: list[int] = []

    async def slow(x: int) -> int:
        assert not running
        running.append(x)
        await asyncio.sleep(0)
        running.remove(x)
        return x

    assert await run(slow, range(5)) == [list(range(5))]


async def test_R035_an_error_comes_after_the_results_before_it_and_cancels_the_rest() -> None:
    """Tasks of later inputs do not outlive the output."""
    cancelled: list[int] = []

    @function(concurrency=4)
    async def fails_at_two(x: int) -> int:
        if x == 2:
            raise ValueError("two")
        if x > 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(x)
                raise
        return x

    (output,) = await lifted(fails_at_two).open_async([stream(range(10))], Context())
    got: list[int] = []
    with pytest.raises(ValueError, match="two"):  # noqa: PT012
        async for one in output:
            got.append(one)
    assert got == [0, 1]
    assert len(asyncio.all_tasks()) == 1


async def test_R123_system_exit_in_a_concurrent_call_stays_inside() -> None:
    """A task that raises SystemExit would end the process."""

    @function(concurrency=2)
    async def leave(x: int) -> int:
        raise SystemExit(3)

    with pytest.raises(FunctionError, match="SystemExit: 3"):
        await run(leave, [1])


async def test_R035_closing_the_output_leaves_no_task() -> None:
    """The driver closes it when the peer is gone."""

    @function(concurrency=2)
    async def forever(x: int) -> int:
        if x:
            await asyncio.Event().wait()
        return x

    (output,) = await lifted(forever).open_async([stream(range(3))], Context())
    assert await anext(output) == 0
    await output.aclose()  # type: ignore[attr-defined]
    assert len(asyncio.all_tasks()) == 1


async def test_R042_none_is_a_value_of_a_request_reply_function() -> None:
    """The map keeps the count."""
    assert await run(lambda x: None, [1, 2]) == [[None, None]]


@pytest.mark.parametrize("is_async", [False, True])
async def test_several_values_are_zipped_and_end_with_the_shortest(is_async: bool) -> None:
    """When any input ends, the output ends."""

    def add(a: int, b: int, c: int) -> int:
        return a + b + c

    async def add_async(a: int, b: int, c: int) -> int:
        return a + b + c

    assert await run(add_async if is_async else add, [1, 2, 3], [10, 20], [100, 200, 300]) == [[111, 222]]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_without_parameters_is_called_once_a_message(is_async: bool) -> None:
    """The payload is ignored."""

    async def hello() -> str:
        return "hello"

    assert await run(hello if is_async else lambda: "hello", [None, None]) == [["hello", "hello"]]


async def test_a_request_reply_function_that_returns_a_generator_is_told() -> None:
    """The fix is an annotation."""

    def broken(x):  # type: ignore[no-untyped-def]
        return (y for y in range(x))

    with pytest.raises(TypeError, match="annotate its parameter and its result Iterator"):
        await run(broken, [1])


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [(value, 1), (lambda a, b: a, 2), (generator, 1)],
)
def test_nothing_is_read_ahead(fn: Any, inputs: int) -> None:
    """One output item costs one item of each input."""
    pulled: list[int] = []

    def source() -> Iterator[int]:
        for one in range(10):
            pulled.append(one)
            yield one

    (output,) = lifted(fn).open([source() for _ in range(inputs)], Context())
    assert pulled == []
    next(output)
    assert pulled == [0] * inputs
