"""What streaming functions hand back."""

from __future__ import annotations

import types
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from invoker.author.results import async_results, parted, parted_async, sync_results, wanted
from invoker.author.spec import WANTED, CallPlan, FunctionSpec, ResultShape, Slot, StreamSpec
from invoker.author.tee import tee
from invoker.context import Context
from invoker.errors import EncodeError
from invoker.message import Message, Output
from tests.bodies import async_generator, run


def spec(result: ResultShape, outputs: int = 1, *, is_open: bool = False) -> FunctionSpec:
    streams = tuple(StreamSpec(f"out{index}") for index in range(outputs))
    return FunctionSpec("f", outputs=streams, open_outputs=is_open, call=CallPlan(result=result))


def never(_: Any) -> Any:
    raise AssertionError("nothing here is to be awaited")


def listed(result: ResultShape, value: Any, **options: Any) -> list[list[Any]]:
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
    assert listed(ResultShape.UNKNOWN, value, is_open=True) == expected


def test_an_annotated_result_is_taken_as_promised() -> None:
    """A value stays a value even when it can be iterated."""
    assert listed(ResultShape.VALUE, iter([1])) != [[1]]
    assert listed(ResultShape.STREAM, [1, 2]) == [[1, 2]]
    assert listed(ResultShape.NOTHING, 5) == []
    assert listed(ResultShape.SEVERAL, [iter([1]), iter([2])], outputs=2) == [[1], [2]]


@pytest.mark.parametrize(
    ("result", "value", "text"),
    [
        (ResultShape.SEVERAL, 5, "returned a int; it promises a tuple"),
        (ResultShape.SEVERAL, (iter([]),), "returned 1 iterators; it promises 2"),
        (ResultShape.SEVERAL, (iter([]), 5), "returned a int where it promises an iterator"),
        (ResultShape.STREAM, None, "returned None where it promises an iterator"),
    ],
)
async def test_a_broken_promise_is_a_type_error(result: ResultShape, value: Any, text: str) -> None:
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

    (output,) = sync_results(spec(ResultShape.UNKNOWN), numbers(), wait)
    assert next(output) == 1
    output.close()  # type: ignore[attr-defined]
    assert closed == [True]


async def test_async_results_adapt_sync_iterables() -> None:
    """An unannotated coroutine function may return a list where it promises a stream."""
    (output,) = await async_results(spec(ResultShape.STREAM), [1, 2])
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


PARTS = FunctionSpec("f", outputs=(StreamSpec("a"), StreamSpec("b")), call=CallPlan(parts=("a", "key")))
LAZY = replace(PARTS, call=replace(PARTS.call, slots=(Slot(WANTED),)))


def context_of(*is_wanted: bool) -> Context:
    """Of an invocation whose outputs are read, or not."""
    context = Context()
    outputs = [SimpleNamespace(index=i, name=f"sent{i}", is_wanted=one) for i, one in enumerate(is_wanted)]
    context.bind(SimpleNamespace(outputs=outputs))  # type: ignore[arg-type]
    return context


def parts(spec: FunctionSpec, value: Any, *is_wanted: bool) -> list[tuple[int | str, Any]]:
    """Addresses and values that one value becomes."""
    return [(one.target, one.value) for one in parted(spec, iter([value]), context_of(*is_wanted))]


@pytest.mark.parametrize(
    "value", [(1, 2), [1, 2], {"a": 1, "key": 2}, {"key": 2, "a": 1}, types.MappingProxyType({"a": 1, "key": 2})]
)
async def test_G066_values_are_parted_by_position_or_by_name(value: Any) -> None:
    """In the order of the outputs; sync and async."""
    assert parts(PARTS, value, True, True) == [(0, 1), (1, 2)]

    async def values() -> AsyncIterator[Any]:
        yield value

    found = [one async for one in parted_async(PARTS, values(), context_of(True, True))]
    assert [(one.target, one.value) for one in found] == [(0, 1), (1, 2)]
    assert parts(PARTS, Output("b", 3), True, True) == [("b", 3)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1,), "returned a tuple of 1 for its outputs a, b; return a tuple of 2, or a dict by name"),
        ([1, 2, 3], "returned a list of 3"),
        ((), "returned a tuple of 0"),
        (None, "returned NoneType for its outputs"),
        (1, "returned int"),
        ({"a": 1, "b": 2}, "returned a dict with 'b'; its outputs are a, key"),
        ({"a": 1}, "returned a dict without its output 'b'"),
    ],
)
def test_G066_a_value_that_is_not_in_parts_is_told(value: Any, text: str) -> None:
    """What there was, and what there should be."""
    with pytest.raises(EncodeError, match=text):
        parts(PARTS, value, True, True)


def test_G060_what_is_not_wanted_may_be_left_out() -> None:
    """Of dicts by any function; of tuples by one that is told what is wanted."""
    assert parts(PARTS, {"key": 2}, False, True) == [(1, 2)]
    assert parts(PARTS, (1, 2), False, True) == [(0, 1), (1, 2)]
    assert parts(LAZY, (2,), False, True) == [(1, 2)]
    assert parts(LAZY, 2, False, True) == [(1, 2)]
    assert parts(LAZY, (1, 2), False, True) == [(0, 1), (1, 2)]
    for spec, value in ((PARTS, (2,)), (PARTS, 2), (LAZY, (1, 2, 3))):
        with pytest.raises(EncodeError, match="for its outputs a, b"):
            parts(spec, value, False, True)
    with pytest.raises(EncodeError, match="without its output 'b'"):
        parts(LAZY, {"a": 1}, False, True)


def test_G060_wanted_names_are_the_functions_own() -> None:
    """Also where a caller has names of its own; those of all parts where it wants the whole."""
    assert wanted(PARTS, context_of(False, True)) == ("b",)
    assert wanted(PARTS, Context()) == ("a", "b")
    assert wanted(FunctionSpec("f", open_outputs=True), context_of(True, False, True)) == ("sent0", "sent2")
    whole = FunctionSpec("f", outputs=(StreamSpec("out"),), parts=PARTS.outputs)
    assert wanted(whole, context_of(True)) == ("a", "b")


async def test_G075_what_is_parted_is_closed() -> None:
    """With the iterator of its parts."""
    closed: list[str] = []

    def values() -> Iterator[Any]:
        try:
            yield from [(1, 2)] * 2
        finally:
            closed.append("sync")

    async def avalues() -> AsyncIterator[Any]:
        try:
            for _ in range(2):
                yield (1, 2)
        finally:
            closed.append("async")

    one = parted(PARTS, values(), context_of(True, True))
    next(one)
    one.close()  # type: ignore[attr-defined]  # it is a generator
    other = parted_async(PARTS, avalues(), context_of(True, True))
    await anext(other)
    await other.aclose()  # type: ignore[attr-defined]  # likewise
    assert closed == ["sync", "async"]
    assert parts(PARTS, (1, 2), True, True)
    assert list(parted(PARTS, iter([]), context_of(True))) == []


class One(NamedTuple):
    a: int


def test_G068_one_part_may_come_bare_or_in_a_dict() -> None:
    """A list is the value then, a NamedTuple is not."""
    one = FunctionSpec("f", outputs=(StreamSpec("a"),), call=CallPlan(parts=("a",)))
    for value in (1, [1], (1,), None):
        assert parts(one, value, True) == [(0, value)]
    assert parts(one, {"a": 1}, True) == [(0, 1)]
    assert parts(one, One(1), True) == [(0, 1)]
    with pytest.raises(EncodeError, match="returned a dict with 'b'"):
        parts(one, {"b": 1}, True)
