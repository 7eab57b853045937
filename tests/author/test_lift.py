"""Functions of every shape, lifted and run in memory.

The matrix: (sync, async) x (value, generator) x (plain, partial, callable object, wrapped, class, bound method).
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.author.decorator import function
from invoker.context import Context
from invoker.errors import DecodeError, ProtocolViolation, Status, StatusError
from invoker.testing import Harness
from tests.bodies import async_generator, async_value, generator, lifted, run, value


class Value:
    def __call__(self, x: int) -> int:
        return x * 10

    method = __call__


class Generator:
    def __call__(self, xs: Iterator[int]) -> Iterator[int]:
        for x in xs:
            yield x * 10

    method = __call__


class AsyncValue:
    async def __call__(self, x: int) -> int:
        return x * 10

    method = __call__


class AsyncGenerator:
    async def __call__(self, xs: AsyncIterator[int]) -> AsyncIterator[int]:
        async for x in xs:
            yield x * 10

    method = __call__


def wrapped(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


MAKES: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda fn, kind: fn,
    "partial": lambda fn, kind: functools.partial(fn),
    "object": lambda fn, kind: kind(),
    "partial of object": lambda fn, kind: functools.partial(kind()),
    "wrapped": lambda fn, kind: wrapped(fn),
    "wrapped twice": lambda fn, kind: wrapped(wrapped(fn)),
    "class": lambda fn, kind: kind,
    "method": lambda fn, kind: kind().method,
    "lambda": lambda fn, kind: functools.wraps(fn)(lambda x: fn(x)),  # noqa: PLW0108
}
BODIES = [(value, Value), (generator, Generator), (async_value, AsyncValue), (async_generator, AsyncGenerator)]


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("body", BODIES, ids=[fn.__name__ for fn, _ in BODIES])
async def test_every_shape_in_every_make_gives_the_same(body: Any, make: Callable[[Any, Any], Any]) -> None:
    """The matrix of shapes."""
    found = await Harness(make(*body)).ainvoke([1, 2, 3])
    assert (found.values(), found.error) == ([10, 20, 30], None)


@pytest.mark.parametrize("fn", [value, async_value])
async def test_R031_request_reply_maps_in_order(fn: Any) -> None:
    """Output k is the function of input k."""
    assert await run(fn, range(100)) == [[10 * k for k in range(100)]]


@pytest.mark.parametrize("is_async", [False, True])
async def test_R029_a_streaming_function_is_called_once_also_without_input(is_async: bool) -> None:
    """Call counter = 1."""
    calls: list[str] = []

    def total(xs: Iterator[int]) -> int:
        calls.append("sync")
        return sum(xs)

    async def total_async(xs: AsyncIterator[int]) -> int:
        calls.append("async")
        return sum([x async for x in xs])

    assert await run(total_async if is_async else total, []) == [[0]]
    assert len(calls) == 1


async def test_R037_a_source_emits_without_input() -> None:
    """Sync and async."""

    def ticks() -> Iterator[int]:
        yield from range(3)

    async def ticks_async() -> AsyncIterator[int]:
        for one in range(3):
            yield one

    assert await run(ticks) == await run(ticks_async) == [[0, 1, 2]]


async def test_R038_inputs_are_found_by_index_and_by_name() -> None:
    """Names the caller sent, then the function's own; mapping is by position."""
    seen: list[Any] = []

    def look(xs: Iterator[int], ctx: Context) -> Iterator[int]:
        seen.extend([ctx.inputs[0] is xs, ctx.inputs["numbers"] is xs, ctx.inputs["xs"] is xs, len(ctx.inputs)])
        yield from xs

    await run(look, [1], context=Context(input_names=("numbers",)))
    assert seen == [True, True, True, 1]


async def test_R044_a_typed_error_passes_through() -> None:
    """The function chooses the status."""

    def refuse(x: int) -> int:
        raise StatusError(Status.NOT_FOUND, "no such thing")

    with pytest.raises(StatusError, match="no such thing") as caught:
        await run(refuse, [1])
    assert caught.value.status is Status.NOT_FOUND


async def test_R119_a_call_that_raises_raises_from_open() -> None:
    """Before it hands back a stream."""

    def total(xs: Iterator[int]) -> int:
        raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        lifted(total).open([iter([1])], Context())


async def test_R157_an_instance_keeps_its_state_between_invocations() -> None:
    """State kept on purpose survives."""

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def __call__(self, x: int) -> int:
            self.count += 1
            return self.count

    body = lifted(Counter)
    await body.start()
    assert [list(body.open([iter([0])], Context())[0]) for _ in range(3)] == [[1], [2], [3]]


def topk(items: Iterator[str], k: int) -> Iterator[str]:
    yield from list(items)[:k]


async def topk_async(items: AsyncIterator[str], k: int) -> AsyncIterator[str]:
    for item in [item async for item in items][:k]:
        yield item


@pytest.mark.parametrize("fn", [topk, topk_async])
async def test_a_single_value_is_the_first_of_its_input(fn: Any) -> None:
    """Later values of that input are not read."""
    assert await run(fn, "abc", [2, 9]) == [["a", "b"]]


@pytest.mark.parametrize("fn", [topk, topk_async])
async def test_a_single_input_that_ends_without_a_value_is_a_decode_error(fn: Any) -> None:
    """The caller is told which one."""
    with pytest.raises(DecodeError, match=r"input #1 'k' ended without a value, and 'topk\w*' needs one"):
        await run(fn, "abc", [])


async def test_variadic_inputs_take_what_comes() -> None:
    """Streams, and values to be zipped."""

    def merge(first: Iterator[int], *streams: Iterator[int]) -> Iterator[int]:
        for one in (first, *streams):
            yield from one

    def add(*values: int) -> int:
        return sum(values)

    assert await run(merge, [1], [2], [3]) == [[1, 2, 3]]
    assert await run(add, [1, 2], [10, 20], [100, 200]) == [[111, 222]]


async def test_the_context_arrives_wherever_it_stands() -> None:
    """First, between, last, keyword-only, optional, and alone."""

    def first(ctx: Context, x: int, y: int) -> str:
        return f"{ctx.invocation_id} {x} {y}"

    def between(x: int, ctx: Context, y: int) -> str:
        return f"{ctx.invocation_id} {x} {y}"

    def last(x: int, y: int, ctx: Context) -> str:
        return f"{ctx.invocation_id} {x} {y}"

    def by_name(x: int, y: int, *, ctx: Context) -> str:
        return f"{ctx.invocation_id} {x} {y}"

    def optional(x: int, y: int, z: int = 0, ctx: Context | None = None) -> str:
        return f"{ctx.invocation_id if ctx else ''} {x} {y}"

    def variadic(ctx: Context, *values: int) -> str:
        return f"{ctx.invocation_id} {values[0]} {values[1]}"

    def one(x: int, ctx: Context) -> str:
        return f"{ctx.invocation_id} {x}"

    def alone(ctx: Context) -> str:
        return ctx.invocation_id

    for fn in (first, between, last, by_name, optional, variadic):
        assert await run(fn, [1], [2], context=Context("i7")) == [["i7 1 2"]], fn.__name__
    assert await run(one, [1], context=Context("i7")) == [["i7 1"]]
    assert await run(alone, [None], context=Context("i7")) == [["i7"]]


async def test_the_decorator_orders_inputs_and_adds_parameters_with_defaults() -> None:
    """Index k is the k-th name."""

    @function(inputs=("b", "a", "scale"))
    def fn(a: int, b: int, other: int = 0, *, scale: int = 1) -> tuple[int, int, int]:
        return a, b, scale

    assert await run(fn, [1], [2], [3]) == [[(2, 1, 3)]]


async def test_a_partial_by_keyword_leaves_the_later_parameter_an_input() -> None:
    """It is passed by keyword."""
    assert await run(functools.partial(lambda a, b: (a, b), a="bound"), [1, 2]) == [[("bound", 1), ("bound", 2)]]


def test_an_input_error_passes_through_the_mapping() -> None:
    """An input that fails is never taken for an end (R-110)."""
    from invoker.errors import Cancelled, InputCancelled

    def failing() -> Iterator[int]:
        yield 1
        raise InputCancelled(Cancelled("gone"))

    fns: Sequence[Any] = (value, generator, lambda x, ctx=None: x)
    for fn in fns:
        (output,) = lifted(fn).open([failing()], Context())
        next(output)
        with pytest.raises(InputCancelled):
            next(output)


async def test_G060_names_are_given_wherever_the_parameter_stands() -> None:
    """By position, by keyword, before the inputs and behind the context; as a tuple or a list."""

    @function(outputs=("a", "b"))
    def first(output_names: list[str], x: int) -> dict[str, Any]:
        return dict.fromkeys(output_names, (x, output_names))

    @function(outputs=("a", "b"))
    async def last(x: int, ctx: Context, k: int = 3, *, output_names: tuple[str, ...] = ()) -> dict[str, Any]:
        assert ctx.function == "last"
        return dict.fromkeys(output_names, (x, output_names))

    @function(outputs=("a", "b"))
    def streamed(xs: Iterator[int], output_names: Sequence[str]) -> Iterator[dict[str, Any]]:
        for x in xs:
            yield dict.fromkeys(output_names, (x, output_names))

    @function(outputs=("a", "b"))
    def variadic(output_names: Sequence[str], *xs: int) -> tuple[Any, Any]:
        return (xs, output_names), None

    for fn, kind in ((first, list), (last, tuple), (streamed, tuple)):
        ((one, two, *_),) = await run(fn, [7])
        names = kind(["a", "b"])
        assert [(one.target, one.value), (two.target, two.value)] == [(0, (7, names)), (1, (7, names))]
    ((one, _),) = await run(variadic, [7], [8])
    assert one.value == ((7, 8), ("a", "b"))


async def test_G066_a_function_in_parts_has_the_hooks_of_the_whole() -> None:
    """It has no parts itself, and is what a function without parts is."""

    def pair(x: int) -> tuple[NDArray[np.int64], int]:
        return np.int64([x]), x

    whole = lifted(pair)
    parts = whole.in_parts
    assert parts.hooks is whole.hooks
    assert parts.in_parts is parts
    assert [len(one) for one in await run(whole, [1])] == [1]
    ((one, two),) = await run(parts, [1])
    assert (one.target, two.target, two.value) == (0, 1, 1)


@pytest.mark.parametrize("is_async", [False, True])
async def test_none_is_no_value_of_several_outputs_without_types(is_async: bool) -> None:
    """A function that sends by name returns it; where there is one output, None stays a value (R-042)."""

    def sends(x, ctx: Context):  # type: ignore[no-untyped-def]
        if x < 0:  # never here, but its code says that it may
            ctx.outputs["left"].send(x)

    async def async_sends(x, ctx: Context):  # type: ignore[no-untyped-def]
        if x < 0:
            await ctx.outputs["left"].send(x)

    fn = async_sends if is_async else sends
    assert await run(function(outputs=("left", "right"))(fn), [1, 2]) == [[]]
    assert await run(function(outputs=("left",))(fn), [1, 2]) == [[None, None]]


def test_R165_a_refusal_quotes_the_names_that_were_sent() -> None:
    """Not the labels under which a function is remembered."""

    def scale(x: int, by: int = 2) -> int:
        return x * by

    for names in (("amount", "bye"), ("amount", "by", "more")):
        with pytest.raises(ProtocolViolation) as refused:
            lifted(scale).with_options(names)
        assert repr(list(names)) in refused.value.detail
