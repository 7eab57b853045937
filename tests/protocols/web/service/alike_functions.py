"""Functions of one value whose calls end in every way; `test_unary_alike` serves most of them as ``async def``, too."""
# The annotations are read here and now, so there is no import from __future__.

import asyncio
import datetime as dt
import enum
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from invoker.author.decorator import function
from invoker.context import Context
from invoker.errors import Cancelled, Status, StatusError, StopInvocation
from invoker.message import Message, Metadata, Output, Ref


@dataclass
class Point:
    x: int
    y: float = 1.5


class Colour(enum.Enum):
    RED = "red"


def number(x: int) -> int:
    return x * x


def fraction(x: float) -> float:
    return x * 1e308


def text(x: str) -> str:
    return x + "!"


def raw(x: bytes) -> bytes:
    return x


def anything(x: Any) -> Any:
    return x


def untyped(x):  # type: ignore[no-untyped-def]
    return x


def point(x: Point) -> Point:
    return x


def listed(x: list[int]) -> list[int]:
    return x[::-1]


def moment(x: dt.datetime) -> dt.datetime:
    return x


def colour(x: Colour) -> Colour:
    return x


def either(x: Literal["a", "b"] | None) -> str | None:
    return x


def add(a: int, b: int) -> int:
    return a + b


def adds(a: int, b: int = 5) -> int:
    return a + b


def total(*xs: int) -> int:
    return sum(xs)


def named(a: str, **more: Any) -> dict[str, Any]:
    return {"a": a, **more}


def nobody() -> int:
    return 3


def nothing(x: int) -> None:
    if x == 13:
        raise ValueError("an unlucky number")


def liar(x: int) -> int:
    return "seven"  # type: ignore[return-value]


def no_number(x: int) -> float:
    return float("nan")


def large(x: int) -> str:
    return "é" * min(x, 300_000)


def message(x: str) -> Message[str]:
    return Message(x, headers={"X-Http-Status": x, "X-Other": "yes", "Location": "/a"})


def typed(x: str) -> Message[str]:
    return Message("<b>", media_type=x)


def headed(x: Message[str]) -> Message[str]:
    return Message(x.payload, headers={"X-Given": x.headers.get("x-given", "")})


def addressed(x: Any) -> Any:
    return Output(x, 3)


def tagged(x: Any) -> Output:
    return Output(x, 3)


def maybe_tagged(x: Any) -> Output | int | None:
    return None if x == 13 else x if x == 3 else Output(x, 3)


def never(x: int) -> NoReturn:
    raise ValueError("it never returns")


def referred(x: str) -> Any:
    return Ref("https://example.org/a b", x)


def told(x: str) -> Any:
    return Metadata("key", x)


def generator(x: int) -> Any:
    return (one for one in range(x))


def awaited(x: int) -> Any:
    async def other() -> int:
        await asyncio.sleep(0)
        return x + 1

    return other()


def awaits_error(x: str) -> Any:
    async def other() -> Any:
        await asyncio.sleep(0)
        return raises(x)

    return other()


def chained(x: str) -> str:
    try:
        return str(1 // 0)
    except ZeroDivisionError as error:
        raise ValueError(x) from error


ERRORS: dict[str, Callable[[], BaseException]] = {
    "value": lambda: ValueError("a bad value"),
    "none": ValueError,
    "stop": lambda: StopIteration("s"),
    "async stop": lambda: StopAsyncIteration("a"),
    "exit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "generator": GeneratorExit,
    "cancel": lambda: asyncio.CancelledError("c"),
    "cancelled": lambda: Cancelled("mine"),
    "stopped": StopInvocation,
    "base": lambda: BaseException("b"),
    "missing": lambda: StatusError(Status.NOT_FOUND, "no such thing"),
    "busy": lambda: StatusError(Status.UNAVAILABLE, "later"),
    "two readers": lambda: ValueError("generator already executing"),
    "group": lambda: ExceptionGroup("g", [ValueError(1)]),
    "memory": MemoryError,
    "unprintable": lambda: ValueError("\udc80"),
}


def raises(x: str) -> str:
    if x in ERRORS:
        error = ERRORS[x]()
        raise error
    return x


async def grouped(x: int) -> int:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(asyncio.sleep(0, x))
    return task.result()


async def group_fails(x: int) -> int:
    async def fails() -> None:
        raise ValueError("in a task of its own")

    async with asyncio.TaskGroup() as group:
        group.create_task(fails())
    return x


async def timed(x: int) -> int:
    async with asyncio.timeout(0.001):
        await asyncio.sleep(5)
    return x


async def task_name(x: int) -> str:
    task = asyncio.current_task()
    assert task is not None
    return task.get_name().split()[0]


VARIABLE = ContextVar("variable", default=0)


async def variable(x: int) -> int:
    before = VARIABLE.get()
    VARIABLE.set(x)
    await asyncio.sleep(0)
    return before


async def cancels_itself(x: int) -> int:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    if x > 0:
        await asyncio.sleep(0)
    return x


async def swallows(x: int) -> int:
    try:
        await cancels_itself(x)
    except asyncio.CancelledError:
        return -1
    return x


class Stops:
    def __await__(self) -> Generator[Any, Any, int]:
        yield from asyncio.sleep(0).__await__()
        raise StopAsyncIteration("late")


async def awaits_stop(x: int) -> int:
    return await Stops()


async def overlapping(x: str) -> str:
    await asyncio.sleep(0)
    return raises(x)


def safe(x: int, y: str = "") -> str:
    return f"{x}{y}"


def sends(x: Any, ctx: Context) -> Any:
    for _ in range(2):
        ctx.outputs[0].send(x)
    return x


def sends_and_returns(x: Any, ctx: Context) -> Any:
    ctx.outputs[0].send(x)
    return x


def sends_and_ends(x: Any, ctx: Context) -> None:
    ctx.outputs[0].send(x)
    ctx.outputs[0].end()


def sends_and_fails(x: Any, ctx: Context) -> Any:
    ctx.outputs[0].send(x)
    raise ValueError("behind its value")


async def asends(x: Any, ctx: Context) -> Any:
    for _ in range(2):
        await ctx.outputs[0].send(x)
    return x


async def asends_and_returns(x: Any, ctx: Context) -> Any:
    await ctx.outputs[0].send(x)
    return x


async def asends_and_ends(x: Any, ctx: Context) -> None:
    await ctx.outputs[0].send(x)
    await ctx.outputs[0].end()


async def asends_and_fails(x: Any, ctx: Context) -> Any:
    await ctx.outputs[0].send(x)
    raise ValueError("behind its value")


SYNC: tuple[Callable[..., Any], ...] = (sends, sends_and_returns, sends_and_ends, sends_and_fails)
ASYNC: tuple[Callable[..., Any], ...] = (
    *(grouped, group_fails, timed, task_name, variable, cancels_itself, swallows, awaits_stop),
    *(asends, asends_and_returns, asends_and_ends, asends_and_fails),
    function(concurrency=3)(overlapping),
)

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(number, fraction, text, raw, anything, untyped, point, listed, moment, colour, either, add, adds, total, named),
    *(nobody, nothing, liar, no_number, large, message, typed, headed, addressed, tagged, maybe_tagged),
    *(never, referred, told, generator, awaited),
    *(awaits_error, chained, raises, function(safe=True)(safe)),
)
