"""The functions that drivers are compared with, sync and async: those of the simulator that need no time, and more.

Each takes texts and gives texts, and what it gives depends on its inputs alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from invoker import Context
from invoker.author.lift import Function
from invoker.author.prepare import prepare_function
from invoker.context import RUNNING
from invoker.errors import InputCancelled
from invoker.message import Message
from tests.simulate.bodies import CASES, FUNCTIONS
from tests.simulate.twins import TWINS

_NEED_TIME = {"slowly", "two", "shared", "deaf", "drops_out", "ticks"}

Texts = Iterator[str]
ATexts = AsyncIterator[str]


def who(xs: Texts, ctx: Context) -> Texts:
    for x in xs:
        yield f"{ctx.metadata.get('who', '')} {RUNNING.get() is ctx} {ctx.function} {x}"


async def awho(xs: ATexts, ctx: Context) -> ATexts:
    async for x in xs:
        yield f"{ctx.metadata.get('who', '')} {RUNNING.get() is ctx} {ctx.function} {x}"


def zigzag(a: Texts, b: Texts) -> Texts:
    for y in b:
        yield y
        yield next(a, "no more") + next(a, "")
    yield from a


async def azigzag(a: ATexts, b: ATexts) -> ATexts:
    async for y in b:
        yield y
        yield await anext(a, "no more") + await anext(a, "")
    async for x in a:
        yield x


def greets(xs: Texts) -> Texts:
    yield "hello"
    yield str(len(list(xs)))


async def agreets(xs: ATexts) -> ATexts:
    yield "hello"
    yield str(len([x async for x in xs]))


def last_words(xs: Texts) -> Texts:
    try:
        yield from xs
    except InputCancelled:
        yield "nobody hears this"
    yield "bye"


async def alast_words(xs: ATexts) -> ATexts:
    try:
        async for x in xs:
            yield x
    except InputCancelled:
        yield "nobody hears this"
    yield "bye"


def crossed(a: Texts, b: Texts) -> tuple[Texts, Texts]:
    return last_words(b), greets(a)


async def acrossed(a: ATexts, b: ATexts) -> tuple[ATexts, ATexts]:
    return alast_words(b), agreets(a)


def carried(xs: Iterator[Message[str]]) -> Iterator[Message[str]]:
    for x in xs:
        yield Message(x.payload + x.media_type, {**x.headers, "n": str(len(x.payload))})


async def acarried(xs: AsyncIterator[Message[str]]) -> AsyncIterator[Message[str]]:
    async for x in xs:
        yield Message(x.payload + x.media_type, {**x.headers, "n": str(len(x.payload))})


def picky(x: str) -> str:
    if "x" in x:
        raise LookupError("on purpose")
    return x


async def apicky(x: str) -> str:
    if "x" in x:
        raise LookupError("on purpose")
    return x


_SYNC = (who, zigzag, greets, last_words, crossed, carried, picky)
_ASYNC = (awho, azigzag, agreets, alast_words, acrossed, acarried, apicky)
for _sync, _asyn in zip(_SYNC, _ASYNC, strict=True):
    _asyn.__name__ = _asyn.__qualname__ = _sync.__name__


def _lifted(simulated: list[Function], more: tuple[Any, ...]) -> dict[str, Function]:
    made = [*simulated, *(prepare_function(one).function for one in more)]
    return {one.spec.name: one for one in made if one.spec.name not in _NEED_TIME}


FORMS: dict[str, dict[str, Function]] = {"sync": _lifted(TWINS, _SYNC), "async": _lifted(FUNCTIONS, _ASYNC)}
"""Both forms of each function, by name."""

NAMES = sorted(FORMS["sync"])

MOST = {one.name: one.most for one in CASES if one.most < 100}
"""How many values an input of these functions takes."""
