"""Functions by which a server shows each row of docs/reference/http.md."""

from __future__ import annotations

import time
from collections.abc import Iterator

from invoker import Status, StatusError, function


@function(safe=True)
def square(x: int) -> int:
    """A number times itself."""
    return x * x


@function(safe=True)
def count(to: int) -> Iterator[int]:
    """Numbers from 1."""
    yield from range(1, to + 1)


@function
def echo(values: Iterator[str]) -> Iterator[str]:
    """The same texts."""
    yield from values


@function
def objects(values: Iterator[dict[str, int]]) -> Iterator[int]:
    """How many members each object has."""
    for value in values:
        yield len(value)


@function
def sizes(values: Iterator[bytes]) -> Iterator[int]:
    """How long each piece is."""
    for value in values:
        yield len(value)


@function
def same(values: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes."""
    yield from values


@function
def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    """Words so many times."""
    for word, number in zip(words, counts, strict=False):
        yield word * number


@function(outputs=("even", "odd"))
def split(to: int) -> tuple[Iterator[int], Iterator[int]]:
    """Two outputs."""
    return iter(range(2, to + 1, 2)), iter(range(1, to + 1, 2))


@function
def choose(status: str) -> int:
    """Raises what it is told to."""
    raise StatusError(Status[status], "as it was told")


@function
def failing(after: int) -> Iterator[int]:
    """Some numbers, and then an error."""
    yield from range(1, after + 1)
    raise ValueError("the function has failed")


@function
def slow(x: int) -> int:
    """Takes longer than it may."""
    time.sleep(x)
    return x


@function(calls_per_minute=1)
def rare(x: int) -> int:
    """May be called once a minute."""
    return x


@function
def sink(values: Iterator[int]) -> None:
    """Gives nothing."""
    for _ in values:
        pass
