"""Nested calls through the real drivers: what callers get, and how both end (E-129)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import pytest

from invoker import Context, Metadata, NestedError, Output
from invoker.errors import InvocationError, Status
from invoker.testing import Harness


def square(x: int) -> int:
    return x * x


def power(x: int, exponent: int = 2, *, plus: int = 0) -> int:
    return x**exponent + plus


async def asquare(x: int) -> int:
    await asyncio.sleep(0)
    return x * x


def upto(n: int) -> Iterator[int]:
    yield from range(n)


async def aupto(n: int) -> AsyncIterator[int]:
    for one in range(n):
        yield one


def total(xs: Iterator[int]) -> int:
    return sum(xs)


async def atotal(xs: AsyncIterator[int]) -> int:
    return sum([one async for one in xs])


def sums(xs: Iterator[int]) -> Iterator[int]:
    count = 0
    for one in xs:
        count += one
        yield count


async def asums(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    count = 0
    async for one in xs:
        count += one
        yield count


def broken(x: int) -> int:
    raise ValueError(f"no {x}")


async def abroken(x: int) -> int:
    raise ValueError(f"no {x}")


def told(n: int) -> Iterator[int]:
    yield Metadata("unit", "m")  # type: ignore[misc]  # it need not be of the type of the items
    yield from range(n)


class Both(NamedTuple):
    half: Iterator[int]
    twice: Iterator[int]


def both(xs: Iterator[int]) -> Both:
    values = list(xs)
    return Both(iter([one // 2 for one in values]), iter([one * 2 for one in values]))


def nothing(x: int) -> None:
    pass


CALLS: dict[str, Any] = {one.__name__: one for one in (
    told, square, power, asquare, upto, aupto, total, atotal, sums, asums, broken, abroken, both, nothing,
)}  # fmt: skip


def sync_call(name: str, *args: Any, **kwargs: Any) -> Any:
    """What a sync function gets by ``ctx.call``."""
    got = []

    def caller(x: int, ctx: Context) -> int:
        got.append(ctx.call(name, *args, **kwargs))
        return x

    assert Harness(caller, calls=CALLS).run([1]) == [1]
    return got[0]


def async_call(name: str, *args: Any, **kwargs: Any) -> Any:
    """What an async function gets by ``await ctx.call``."""
    got = []

    async def caller(x: int, ctx: Context) -> int:
        got.append(await ctx.call(name, *args, **kwargs))
        return x

    assert Harness(caller, calls=CALLS).run([1]) == [1]
    return got[0]


def sync_stream(name: str, *args: Any, **kwargs: Any) -> Any:
    def caller(x: int, ctx: Context) -> int:
        got.extend(ctx.stream(name, *args, **kwargs))
        return x

    got: list[Any] = []
    assert Harness(caller, calls=CALLS).run([1]) == [1]
    return got


def async_stream(name: str, *args: Any, **kwargs: Any) -> Any:
    async def caller(x: int, ctx: Context) -> int:
        got.extend([one async for one in ctx.stream(name, *args, **kwargs)])
        return x

    got: list[Any] = []
    assert Harness(caller, calls=CALLS).run([1]) == [1]
    return got


@pytest.mark.parametrize("call", [sync_call, async_call])
@pytest.mark.parametrize("prefix", ["", "a"])
def test_E129_a_result_is_that_of_the_other_function(call: Any, prefix: str) -> None:
    assert call(f"{prefix}square", 7) == 49
    assert call(f"{prefix}square", x=7) == 49
    assert call(f"{prefix}upto", 3) == [0, 1, 2]
    assert call(f"{prefix}total", [1, 2, 3]) == 6
    assert call(f"{prefix}total", iter([1, 2, 3])) == 6
    assert call(f"{prefix}square", iter([1, 2, 3])) == [1, 4, 9]


@pytest.mark.parametrize("call", [sync_call, async_call])
def test_E129_arguments_bind_as_in_python(call: Any) -> None:
    assert call("power", 3) == 9
    assert call("power", 3, 3) == 27
    assert call("power", 3, plus=1) == 10
    assert call("power", exponent=3, x=2) == 8
    assert call("both", [2, 4]) == [[1, 2], [4, 8]]
    assert call("nothing", 1) is None


@pytest.mark.parametrize("stream", [sync_stream, async_stream])
@pytest.mark.parametrize("prefix", ["", "a"])
def test_E129_a_stream_gives_each_value(stream: Any, prefix: str) -> None:
    assert stream(f"{prefix}upto", 40) == list(range(40))
    assert stream(f"{prefix}sums", iter([1, 2, 3])) == [1, 3, 6]
    assert stream(f"{prefix}sums", [1, 2, 3]) == [1, 3, 6]
    assert stream(f"{prefix}square", 3) == [9]


@pytest.mark.parametrize("stream", [sync_stream, async_stream])
def test_E129_values_of_several_outputs_say_which(stream: Any) -> None:
    got = stream("both", [2, 4])
    assert sorted((one.target, one.value) for one in got if isinstance(one, Output)) == [
        ("half", 1), ("half", 2), ("twice", 4), ("twice", 8),
    ]  # fmt: skip


@pytest.mark.parametrize("call", [sync_call, async_call])
@pytest.mark.parametrize(
    ("name", "args", "kwargs", "status", "text"),
    [
        ("broken", (3,), {}, Status.UNKNOWN, "ValueError: no 3"),
        ("abroken", (3,), {}, Status.UNKNOWN, "ValueError: no 3"),
        ("square", ("x",), {}, Status.UNKNOWN, "int"),
        ("squares", (1,), {}, Status.NOT_FOUND, "no function is named 'squares'"),
        ("square", (1, 2), {}, Status.INVALID_ARGUMENT, "takes 1 input by position, and 2 are given"),
        ("square", (), {}, Status.INVALID_ARGUMENT, "needs its input 'x'"),
        ("power", (1,), {"exponents": 2}, Status.INVALID_ARGUMENT, "did you mean 'exponent'"),
        ("power", (1,), {"x": 2}, Status.INVALID_ARGUMENT, "'power' is given its input 'x' twice"),
    ],
)
def test_E129_an_uncaught_error_ends_the_caller_with_its_status(
    call: Any, name: str, args: Any, kwargs: Any, status: Status, text: str
) -> None:
    with pytest.raises(InvocationError, match=text) as caught:
        call(name, *args, **kwargs)
    assert isinstance(caught.value, NestedError)
    assert caught.value.status is status


@pytest.mark.parametrize("name", ["broken", "abroken"])
def test_E129_an_error_can_be_caught(name: str) -> None:
    def caller(x: int, ctx: Context) -> str:
        try:
            ctx.call(name, x)
        except NestedError as error:
            return f"{error.status.name}: {error.detail}"
        return ""

    assert Harness(caller, calls=CALLS).run([3]) == ["UNKNOWN: Invoker: Unexpected Error: ValueError: no 3"]


@pytest.mark.parametrize("name", ["total", "atotal"])
def test_E129_what_an_iterator_of_the_caller_raises_is_the_callers(name: str) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    def caller(x: int, ctx: Context) -> str:
        with pytest.raises(KeyError, match="mine"):
            ctx.call(name, items())
        return "mine"

    assert Harness(caller, calls=CALLS).run([3]) == ["mine"]


@pytest.mark.parametrize(("call", "stream"), [(sync_call, sync_stream), (async_call, async_stream)])
def test_metadata_stands_between_the_values_of_a_stream(call: Any, stream: Any) -> None:
    assert stream("told", 2) == [Metadata("unit", "m"), 0, 1]
    assert call("told", 2) == [0, 1]
