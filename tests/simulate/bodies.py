"""The functions that are simulated, in their async form, and what each must produce of given inputs.

`tests.simulate.twins` has the sync form of each. Values are texts that say where they come from (conversation, input,
number), so a value that is lost, doubled, out of order or in the wrong invocation is seen.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from invoker import Context, function
from invoker.author.prepare import prepare_function
from invoker.errors import CallError, EncodeError, FunctionError, InputCancelled, InvocationError
from invoker.message import Message, Output

Strings = AsyncIterator[str]
Expected = Callable[[list[list[str]]], list[Iterable[Any]]]


async def echo(xs: Strings) -> Strings:
    async for x in xs:
        yield x


async def slowly(xs: Strings) -> Strings:
    try:
        async for x in xs:
            await asyncio.sleep(2)
            yield x
    finally:
        await asyncio.sleep(1)


async def shout(x: str) -> str:
    return x + "!"


async def join(a: str, b: str) -> str:
    return f"{a}|{b}"


async def count(xs: Strings) -> int:
    return len([x async for x in xs])


async def sink(xs: Strings) -> None:
    async for _ in xs:
        pass


async def second_first(a: Strings, b: Strings) -> Strings:
    async for x in b:
        yield x
    async for x in a:
        yield x


async def first_two(xs: Strings) -> Strings:
    left = 2
    async for x in xs:
        yield x
        left -= 1
        if not left:
            return


async def raises_after_two(xs: Strings) -> Strings:
    left = 2
    async for x in xs:
        yield x
        left -= 1
        if not left:
            break
    raise ValueError("on purpose")


async def raises_when_called(xs: Strings) -> int:
    raise SystemExit("on purpose")


async def two(a: Strings, b: Strings) -> tuple[Strings, Strings]:
    return echo(a), slowly(b)


async def one_ends_early(a: Strings, b: Strings) -> tuple[Strings, Strings]:
    return first_two(a), echo(b)


async def one_raises(a: Strings, b: Strings) -> tuple[Strings, Strings]:
    return raises_after_two(a), echo(b)


async def shared(xs: Strings) -> tuple[Strings, Strings]:
    return echo(xs), slowly(xs)


async def tagged(xs: Strings) -> AsyncIterator[Output]:
    number = 0
    async for x in xs:
        yield Output(number % 2, Message(x, {"n": str(number)}))
        number += 1


async def stray(xs: Strings) -> AsyncIterator[Output]:
    async for x in xs:
        yield Output(0, x)
    yield Output(7, "nobody has this output")


async def misfit(xs: Strings) -> Strings:
    async for x in xs:
        yield x
    yield object()  # type: ignore[misc]


async def deaf(xs: Strings) -> Strings:
    for _ in range(3):
        try:
            async for x in xs:
                yield x
            return
        except GeneratorExit:
            raise
        except BaseException as error:
            if not isinstance(error, InputCancelled):
                await asyncio.sleep(1)
            yield "late"


async def swallows(xs: Strings) -> Strings:
    while True:
        try:
            x = await anext(xs)
        except StopAsyncIteration:
            return
        except Exception:
            continue
        yield x


async def source() -> Strings:
    for number in range(5):
        yield str(number)


async def ticks() -> Strings:
    for number in itertools.count():
        await asyncio.sleep(1)
        yield str(number)


@function(outputs=("a", "b"))
async def sends(xs: Strings, ctx: Context) -> None:
    async for x in xs:
        await ctx.outputs["a"].send(x)
        await ctx.outputs[1].send(x + "!")


@function(outputs=("a", "b"))
async def ends_one(xs: Strings, ctx: Context) -> None:
    is_first = True
    async for x in xs:
        if is_first:
            await ctx.outputs["a"].send(x)
            await ctx.outputs["a"].end()
        is_first = False
        await ctx.outputs["b"].send(x)


async def marked(xs: Strings, mark: str = "-") -> Strings:
    async for x in xs:
        yield x + mark


async def spell(x: str) -> Strings:
    for letter in x:
        yield letter


async def drops_out(xs: Strings, ctx: Context) -> Strings:
    async for x in xs:
        yield x
        await asyncio.sleep(1)
        if ctx.cancelled:
            return


@dataclass(frozen=True, slots=True)
class Case:
    """A function with what must come of it.

    Attributes:
        name: In the catalogue.
        inputs: How many there are.
        outputs: How many there are.
        expected: What each output gives of the values of all inputs; None: not determined, see `is_shared`.
        error: What it ends with if nothing else goes wrong.
        is_endless: It never ends by itself.
        is_early: It may end before its inputs do.
        is_loose: How much an output gives before another one fails is not determined.
        option: The number of an input that may have one value, which comes first.
        most: How many values an input takes.
    """

    name: str
    inputs: int
    outputs: int
    expected: Expected | None
    error: type[InvocationError] | None = None
    is_endless: bool = False
    is_early: bool = False
    is_loose: bool = False
    option: int | None = None
    most: int = 1_000

    @property
    def is_shared(self) -> bool:
        """Whether two outputs share one input: together they give its values, each in order."""
        return self.expected is None


_TABLE: tuple[tuple[Any, Case], ...] = (
    (echo, Case("echo", 1, 1, lambda v: [v[0]])),
    (slowly, Case("slowly", 1, 1, lambda v: [v[0]])),
    (shout, Case("shout", 1, 1, lambda v: [[x + "!" for x in v[0]]])),
    (join, Case("join", 2, 1, lambda v: [[f"{a}|{b}" for a, b in zip(v[0], v[1], strict=False)]], is_early=True)),
    (count, Case("count", 1, 1, lambda v: [[len(v[0])]])),
    (sink, Case("sink", 1, 0, lambda _: [])),
    (second_first, Case("second_first", 2, 1, lambda v: [v[1] + v[0]])),
    (first_two, Case("first_two", 1, 1, lambda v: [v[0][:2]], is_early=True)),
    (raises_after_two, Case("raises_after_two", 1, 1, lambda v: [v[0][:2]], FunctionError, is_early=True)),
    (raises_when_called, Case("raises_when_called", 1, 1, lambda _: [[]], CallError, is_early=True)),
    (two, Case("two", 2, 2, lambda v: [v[0], v[1]])),
    (one_ends_early, Case("one_ends_early", 2, 2, lambda v: [v[0][:2], v[1]], is_early=True)),
    (one_raises, Case("one_raises", 2, 2, lambda v: [v[0][:2], v[1]], FunctionError, is_loose=True, is_early=True)),
    (shared, Case("shared", 1, 2, None)),
    (tagged, Case("tagged", 1, 2, lambda v: [v[0][0::2], v[0][1::2]])),
    (stray, Case("stray", 1, 1, lambda v: [v[0]], EncodeError)),
    (misfit, Case("misfit", 1, 1, lambda v: [v[0]], EncodeError)),
    (deaf, Case("deaf", 1, 1, lambda v: [v[0]])),
    (swallows, Case("swallows", 1, 1, lambda v: [v[0]])),
    (source, Case("source", 0, 1, lambda _: [[str(number) for number in range(5)]], is_early=True)),
    (sends, Case("sends", 1, 2, lambda v: [v[0], [x + "!" for x in v[0]]])),
    (ends_one, Case("ends_one", 1, 2, lambda v: [v[0][:1], v[0]])),
    (marked, Case("marked", 2, 1, lambda v: [[x + (v[1] or ["-"])[0] for x in v[0]]], option=1)),
    (spell, Case("spell", 1, 1, lambda v: [list("".join(v[0][:1]))], most=1, is_early=True)),
    (drops_out, Case("drops_out", 1, 1, lambda v: [v[0]])),
    (ticks, Case("ticks", 0, 1, lambda _: [map(str, itertools.count())], is_endless=True)),
)

CASES = tuple(case for _, case in _TABLE)
FUNCTIONS = [prepare_function(body).function for body, _ in _TABLE]
