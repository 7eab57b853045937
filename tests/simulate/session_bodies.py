"""The actions that are simulated, and what each gives for what it reads.

Everything is text. What a node stands for is the list of its leaves; functions of text streams see pieces of leaves,
which come as they like, so they give one leaf of it all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from invoker.author.lift import lift
from invoker.author.reader import read
from invoker.message import Message

Text = AsyncIterator[str]
Leaves = list[str]

_chance: ContextVar[Random] = ContextVar("chance")


def seeded(chance: Random) -> None:
    """In this context, this decides how long functions take."""
    _chance.set(chance)


async def pause() -> None:
    """Wait for some turns, some time, or not at all."""
    chance = _chance.get()
    kind = chance.randrange(8)
    if kind < 3:
        for _ in range(kind):
            await asyncio.sleep(0)
    elif kind == 7:
        await asyncio.sleep(chance.randrange(1, 5))


class Pair(NamedTuple):
    left: Text
    right: Text


async def relay(x: Text) -> Text:
    async for one in x:
        await pause()
        yield one


async def second_first(x: Text, y: Text) -> Text:
    async for one in y:
        yield one
    async for one in x:
        await pause()
        yield one


async def shout(x: str) -> str:
    await pause()
    return x + "!"


async def join(a: str, b: str) -> str:
    await pause()
    return f"{a}|{b}"


async def count(x: AsyncIterator[Message[Any]]) -> str:
    return str(len([one async for one in x]))


async def first(x: AsyncIterator[Message[Any]]) -> Text:
    async for one in x:
        yield one.payload
        return


async def pair(x: Text, y: Text) -> Pair:
    return Pair(relay(x), relay(y))


async def sink(x: Text) -> None:
    async for _ in x:
        await pause()


async def source() -> Text:
    for number in range(20):
        await pause()
        yield str(number)


async def fails(x: Text) -> Text:
    async for one in x:
        yield one
        break
    await pause()
    raise ValueError("on purpose")


async def deaf(x: Text) -> Text:
    """Is not told twice."""
    for _ in range(2):
        try:
            async for one in x:
                yield one
            return
        except (Exception, asyncio.CancelledError):
            await asyncio.sleep(2)


async def ticks() -> Text:
    while True:
        await asyncio.sleep(1)
        yield "x"


def _text(*inputs: Leaves) -> Leaves:
    return ["".join(one for leaves in inputs for one in leaves)] if any(inputs) else []


@dataclass(frozen=True, slots=True)
class Action:
    """A function with what comes of it.

    Attributes:
        name: In the catalogue.
        inputs: Names of parameters.
        outputs: Names, and what each gives for the leaves of all inputs.
        is_faulty: It ends its session, or something must end it.
        is_endless: It never ends by itself.
        is_strict: Each input must have one leaf.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: dict[str, Callable[..., Leaves]]
    is_faulty: bool = False
    is_endless: bool = False
    is_strict: bool = False


_TABLE: tuple[tuple[Any, Action], ...] = (
    (relay, Action("relay", ("x",), {"out": _text})),
    (second_first, Action("second_first", ("x", "y"), {"out": lambda x, y: _text(y, x)})),
    (shout, Action("shout", ("x",), {"out": lambda x: [one + "!" for one in x]})),
    (join, Action("join", ("a", "b"), {"out": lambda a, b: [f"{a[0]}|{b[0]}"]}, is_strict=True)),
    (count, Action("count", ("x",), {"out": lambda x: [str(len(x))]})),
    (first, Action("first", ("x",), {"out": lambda x: x[:1]})),
    (pair, Action("pair", ("x", "y"), {"left": lambda x, _: _text(x), "right": lambda _, y: _text(y)})),
    (sink, Action("sink", ("x",), {})),
    (source, Action("source", (), {"out": lambda: ["".join(map(str, range(20)))]})),
    (deaf, Action("deaf", ("x",), {"out": _text})),
    (fails, Action("fails", ("x",), {"out": _text}, is_faulty=True)),
    (ticks, Action("ticks", (), {"out": lambda: ["x" * 10_000]}, is_faulty=True, is_endless=True)),
)

ACTIONS = tuple(action for _, action in _TABLE)
FUNCTIONS = [lift(function, read(function, name=action.name)) for function, action in _TABLE]
