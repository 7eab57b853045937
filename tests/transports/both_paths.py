"""Functions in both forms, and calls of them whose answers must not depend on how their bytes arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from invoker import Context, function
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.context import RUNNING
from tests.transports.riff import data, form, start


def typed(payload: bytes, media_type: str = "application/json", index: int = 0, **headers: str) -> bytes:
    frame = pb.InputFrame(payload=payload, contentType=media_type, argIndex=index, headers=headers)
    return pb.InputSignal(data=frame).SerializeToString()


@dataclass(frozen=True)
class Exchange:
    """A call.

    Attributes:
        function: Its name.
        frames: What is sent.
        is_cut: A violation among the frames ends it: how many replies came before is not determined.
    """

    function: str
    frames: tuple[bytes, ...]
    is_cut: bool = False


def functions(kind: str) -> list[Any]:
    """The functions that a kind of transport serves."""
    return [form(kind, sync, asyn) for sync, asyn in zip(_SYNC, _ASYNC, strict=True)]


def reply(answer: tuple[list[bytes], str, str]) -> tuple[list[tuple[int, bytes, str, dict[str, str]]], str, str]:
    """An answer in words: output, payload, media type and headers of each frame; the status, its text."""
    frames = [pb.OutputSignal.FromString(one).data for one in answer[0]]
    return [(one.resultIndex, one.payload, one.contentType, dict(one.headers)) for one in frames], *answer[1:]


# Each function in its sync form, then in its async form.


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


def echo(xs: Iterator[bytes]) -> Iterator[bytes]:
    yield from xs


async def aecho(xs: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for x in xs:
        yield x


def total(xs: Iterator[int]) -> int:
    return sum(xs)


async def atotal(xs: AsyncIterator[int]) -> int:
    return sum([x async for x in xs])


def fails(xs: Iterator[int]) -> Iterator[int]:
    yield from xs
    raise ValueError("on purpose")


async def afails(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x
    raise ValueError("on purpose")


def refuses(xs: Iterator[int]) -> Iterator[int]:
    raise ValueError("on purpose")


async def arefuses(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    raise ValueError("on purpose")


def both(xs: Iterator[int], ys: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
    return (x + 1 for x in xs), (y * 2 for y in ys)


async def aboth(xs: AsyncIterator[int], ys: AsyncIterator[int]) -> tuple[AsyncIterator[int], AsyncIterator[int]]:
    return (x + 1 async for x in xs), (y * 2 async for y in ys)


def scaled(xs: Iterator[int], factor: int = 10) -> Iterator[int]:
    for x in xs:
        yield x * factor


async def ascaled(xs: AsyncIterator[int], factor: int = 10) -> AsyncIterator[int]:
    async for x in xs:
        yield x * factor


@function(outputs=("a", "b"))
def sends(xs: Iterator[int], ctx: Context) -> None:
    for x in xs:
        ctx.outputs["a"].send(x)
        ctx.outputs["b"].send(-x)
    ctx.outputs["b"].end()


@function(outputs=("a", "b"))
async def asends(xs: AsyncIterator[int], ctx: Context) -> None:
    async for x in xs:
        await ctx.outputs["a"].send(x)
        await ctx.outputs["b"].send(-x)
    await ctx.outputs["b"].end()


def who(xs: Iterator[int], ctx: Context) -> Iterator[str]:
    for _ in xs:
        yield f"{ctx.metadata['who']} {RUNNING.get() is ctx}"


async def awho(xs: AsyncIterator[int], ctx: Context) -> AsyncIterator[str]:
    async for _ in xs:
        yield f"{ctx.metadata['who']} {RUNNING.get() is ctx}"


_SYNC = (square, echo, total, fails, refuses, both, scaled, sends, who)
_ASYNC = (asquare, aecho, atotal, afails, arefuses, aboth, ascaled, asends, awho)
for _sync, _asyn in zip(_SYNC, _ASYNC, strict=True):
    _asyn.__name__ = _asyn.__qualname__ = _sync.__name__

_HEAD = start("application/json")
_TWO = start("application/json", outputs=2)
_ONES = tuple(typed(b"%d" % number) for number in range(5))

CALLS: dict[str, Exchange] = {
    "one value": Exchange("square", (_HEAD, typed(b"7"))),
    "five values": Exchange("square", (_HEAD, *_ONES)),
    "no value": Exchange("square", (_HEAD,)),
    "bytes": Exchange("echo", (start(), data(b"a"), data(b""), data(b"c" * 1000))),
    "large": Exchange("echo", (start(), data(b"x" * 40_000))),
    "with headers": Exchange("echo", (start(), typed(b"a", "application/octet-stream", n="1"))),
    "a sum": Exchange("total", (_HEAD, *_ONES)),
    "a sum of nothing": Exchange("total", (_HEAD,)),
    "raises later": Exchange("fails", (_HEAD, *_ONES[:2])),
    "raises at once": Exchange("refuses", (_HEAD, *_ONES[:1])),
    "two outputs, one input": Exchange("both", (_TWO, *_ONES)),
    "two inputs": Exchange("both", (_TWO, typed(b"1"), typed(b"2", index=1))),
    "an option": Exchange("scaled", (_HEAD, typed(b"3", index=1), *_ONES)),
    "no option": Exchange("scaled", (_HEAD, *_ONES)),
    "an option too late": Exchange("scaled", (_HEAD, *_ONES, typed(b"3", index=1)), is_cut=True),
    "sent by the context": Exchange("sends", (_TWO, *_ONES)),
    "who": Exchange("who", (_HEAD, *_ONES)),
    "nothing at all": Exchange("echo", ()),
    "data before the start": Exchange("echo", (data(b"a"),)),
    "two starts": Exchange("echo", (start(), start())),
    "a second start later": Exchange("echo", (start(), data(b"a"), start(), data(b"b")), is_cut=True),
    "an empty signal": Exchange("echo", (start(), b"")),
    "garbage": Exchange("echo", (start(), data(b"a"), b"\xff\xff"), is_cut=True),
    "garbage first": Exchange("echo", (b"\xff\xff", data(b"a"))),
    "no such input": Exchange("echo", (start(), data(b"a", 7))),
    "no such input, later": Exchange("echo", (start(), data(b"a"), data(b"b", -1)), is_cut=True),
    "unknown media type": Exchange("square", (_HEAD, typed(b"1"), typed(b"1", "application/x-doom")), is_cut=True),
    "not JSON": Exchange("square", (_HEAD, typed(b"1"), typed(b"{")), is_cut=True),
    "not acceptable": Exchange("square", (start("image/png"), typed(b"1"))),
    "not acceptable, nothing more": Exchange("square", (start("image/png"),)),
    "too many outputs": Exchange("square", (start(outputs=3), typed(b"1"))),
    "no such function": Exchange("nobody", (_HEAD, typed(b"1"))),
}
