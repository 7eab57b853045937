"""What the foreign clients of streams call. Each tells in files of a folder what became of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

from invoker import function

_FOLDER = Path(os.environ["TEST_NOTES"])


def _note(name: str, text: object) -> None:
    """A line behind those of the file."""
    with (_FOLDER / name).open("a") as file:
        file.write(f"{text}\n")


@contextmanager
def _noted(name: str) -> Iterator[None]:
    """Tell how a body ended: done, or the class of what ended it; and then, in any case, closed."""
    _note(name, "begun")
    try:
        yield
    except BaseException as error:
        _note(name, type(error).__name__)
        raise
    else:
        _note(name, "done")
    finally:
        _note(name, "closed")


@function(safe=True)
def count(to: int) -> Iterator[int]:
    """Numbers from 1."""
    yield from range(1, to + 1)


@function(safe=True)
def counted(to: int) -> Iterator[int]:
    """The same, and tells of it."""
    with _noted("counted"):
        yield from range(1, to + 1)


@function(safe=True)
async def ticks() -> AsyncIterator[int]:
    """Numbers for as long as somebody listens."""
    with _noted("ticks"):
        number = 0
        while True:
            number += 1
            yield number
            await asyncio.sleep(0.005)


@function
def sync_ticks() -> Iterator[int]:
    """The same in a thread."""
    with _noted("sync_ticks"):
        number = 0
        while True:
            number += 1
            yield number
            time.sleep(0.005)


@function
async def flood() -> AsyncIterator[str]:
    """More than any client wants, as fast as it can go."""
    with _noted("flood"):
        text, number = "x" * 65536, 0
        while True:
            number += 1
            _note("flooded", number)
            yield text


@function
async def echo(values: AsyncIterator[str]) -> AsyncIterator[str]:
    """Each line in capitals, at once."""
    with _noted("echo"):
        async for value in values:
            _note("heard", value)
            yield value.upper()


@function
def sync_echo(values: Iterator[str]) -> Iterator[str]:
    """The same in a thread."""
    with _noted("sync_echo"):
        for value in values:
            yield value.upper()


@function
async def total(numbers: AsyncIterator[int]) -> AsyncIterator[int]:
    """Commits the sum of all numbers, once all are there."""
    with _noted("total"):
        found = 0
        async for number in numbers:
            found += number
            _note("added", number)
        _note("committed", found)
        yield found


@function
def sync_total(numbers: Iterator[int]) -> Iterator[int]:
    """The same in a thread."""
    with _noted("sync_total"):
        found = 0
        for number in numbers:
            found += number
            _note("added", number)
        _note("committed", found)
        yield found


@function
def pieces(data: Iterator[bytes]) -> Iterator[int]:
    """Commits how many bytes a file has, once all of it is there."""
    with _noted("pieces"):
        found = 0
        for piece in data:
            found += len(piece)
            _note("added", len(piece))
        _note("committed", found)
        yield found


@function(safe=True)
def failing(after: int = 2) -> Iterator[int]:
    """Some numbers, and then an error."""
    yield from range(1, after + 1)
    raise ValueError("the function has failed")


@function
def repeat(words: Iterator[str], times: Iterator[int]) -> Iterator[str]:
    """Each word so many times."""
    for word, number in zip(words, times, strict=False):
        yield from [word] * number
